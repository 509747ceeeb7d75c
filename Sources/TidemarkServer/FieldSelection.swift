import TidemarkWire

/// The fields that a snapshot is limited to, where a device needs only those: a column that is new to it (F5).
struct FieldSelection: Hashable, Sendable {
    /// In their canonical spelling, in whichever case.
    private let names: [[UInt8]]

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
        self.names = names.map { DataObject.canonical(String($0)) }
    }

    /// Those fields of a stored row, as a JSON object; `nil` where it has none of them.
    func object(from payload: UnsafeRawBufferPointer) -> [UInt8]? {
        var writer = JSONWriter(capacity: 64)
        var reader = JSONReader(payload)
        do throws(JSONError) {
            try reader.enterObject()
            while let name = try reader.nextMember() {
                let value = try reader.skip()
                guard names.contains(where: { Identifier.isSameName($0, payload[name.range]) }) else { continue }
                writer.raw(writer.bytes.isEmpty ? "{\"" : ",\"")
                writer.raw(payload[name.range])
                writer.raw("\":")
                writer.raw(payload[value])
            }
        } catch {
            // The log holds what this server wrote; a row that it cannot read has nothing to show.
            return nil
        }
        guard !writer.bytes.isEmpty else { return nil }
        writer.raw("}")
        return writer.bytes
    }
}
