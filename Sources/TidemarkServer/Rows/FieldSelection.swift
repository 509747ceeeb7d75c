import TidemarkWire

/// The fields that a row is limited to, where a reader needs only those: a column that is new to it (F5), or what was
/// written since it had the row (A9).
struct FieldSelection: Hashable, Sendable {
    /// In their canonical spelling, in whichever case.
    private let names: [ArraySlice<UInt8>]

    /// - Throws: ``Problem`` where the text is not a list of names, `a,b`.
    init(_ text: String) throws(Problem) {
        let names = text.split(separator: ",", omittingEmptySubsequences: false)
        guard names.count <= Limits.selectedFields else {
            throw Problem(
                .limitOutOfRange, "`fields` lists \(names.count) names; it may be up to \(Limits.selectedFields).")
        }
        // A column's name is as free as a record's id.
        guard names.allSatisfy({ Identifier.isRecordID(String($0)) }) else {
            throw Problem(.invalidIdentifier, "In `fields`: a name that is not of the allowed form.")
        }
        self.names = names.map { DataObject.canonical(String($0))[...] }
    }

    /// `nil` where these are none, or so many that looking for them costs more than it saves.
    init?(canonical names: [ArraySlice<UInt8>]) {
        guard (1...Limits.selectedFields).contains(names.count) else { return nil }
        self.names = names
    }

    func contains(_ name: some Collection<UInt8>) -> Bool { names.contains { Identifier.isSameName($0, name) } }

    /// The selected fields of a stored row, as a JSON object; `nil` where it has none of them, or with `all` not each
    /// of them.
    func object(from payload: UnsafeRawBufferPointer, all: Bool = false) -> [UInt8]? {
        var writer = JSONWriter(capacity: 64)
        var count = 0
        var reader = JSONReader(payload)
        do throws(JSONError) {
            try reader.enterObject()
            while let name = try reader.nextMember() {
                let value = try reader.skip()
                guard contains(payload[name.range]) else { continue }
                count += 1
                writer.raw(writer.bytes.isEmpty ? "{\"" : ",\"")
                writer.raw(payload[name.range])
                writer.raw("\":")
                writer.raw(payload[value])
            }
        } catch {
            // The log holds what this server wrote; a row that it cannot read has nothing to show.
            return nil
        }
        guard !writer.bytes.isEmpty, !all || count == names.count else { return nil }
        writer.raw("}")
        return writer.bytes
    }
}
