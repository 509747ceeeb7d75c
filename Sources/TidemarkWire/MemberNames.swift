/// Notices a member that is given twice in one object, by the bytes of its name, and an object that has too many.
///
/// It keeps places in the document, and no copies of the names: an object of many small members must not cost many
/// times its bytes.
package struct MemberNames {
    /// The number of members up to which they are looked through one by one.
    private static let few = 8

    private struct Entry {
        var hash: Int
        var text: JSONReader.Text
    }

    private var entries: [Entry] = []
    /// Open addressing: places in `entries`, from 1 on; 0 is free. Empty as long as there are few.
    private var table: [UInt16] = []

    package init() {}

    /// - Parameter ignoringCase: names that differ only in the case of ASCII letters are one.
    package mutating func insert(
        _ text: JSONReader.Text, of reader: JSONReader, ignoringCase: Bool = false
    ) throws(JSONError) {
        guard entries.count < Limits.names else { throw JSONError(.tooManyMembers, at: text.range.lowerBound) }
        let entry = Entry(hash: Self.hash(text, reader, ignoringCase), text: text)
        guard !contains(entry, reader, ignoringCase) else {
            throw JSONError(.duplicateMember, at: text.range.lowerBound).inside(reader.string(text))
        }
        entries.append(entry)
        if entries.count > Self.few, entries.count * 2 > table.count {
            table = Array(repeating: 0, count: max(Self.few * 4, table.count * 2))
            for place in entries.indices { enter(place) }
        } else if !table.isEmpty {
            enter(entries.count - 1)
        }
    }

    private mutating func enter(_ place: Int) {
        var slot = slot(of: entries[place].hash)
        while table[slot] != 0 { slot = (slot + 1) & (table.count - 1) }
        table[slot] = UInt16(place + 1)
    }

    private func slot(of hash: Int) -> Int { hash & (table.count - 1) }

    private func contains(_ entry: Entry, _ reader: JSONReader, _ ignoringCase: Bool) -> Bool {
        func isSame(_ other: Entry) -> Bool {
            other.hash == entry.hash
                && Self.name(other.text, reader, ignoringCase) == Self.name(entry.text, reader, ignoringCase)
        }
        guard !table.isEmpty else { return entries.contains(where: isSame) }
        var slot = slot(of: entry.hash)
        while table[slot] != 0 {
            if isSame(entries[Int(table[slot]) - 1]) { return true }
            slot = (slot + 1) & (table.count - 1)
        }
        return false
    }

    /// Seeded anew for each process, so that nobody can choose names that meet.
    private static func hash(_ text: JSONReader.Text, _ reader: JSONReader, _ ignoringCase: Bool) -> Int {
        var hasher = Hasher()
        func combine(_ bytes: UnsafeRawBufferPointer) {
            guard ignoringCase else { return hasher.combine(bytes: bytes) }
            for byte in bytes { hasher.combine(Identifier.lowered(byte)) }
        }
        if text.hasEscapes {
            reader.unescaped(text).withUnsafeBytes { combine($0) }
        } else {
            combine(UnsafeRawBufferPointer(rebasing: reader.bytes[text.range]))
        }
        return hasher.finalize()
    }

    private static func name(_ text: JSONReader.Text, _ reader: JSONReader, _ ignoringCase: Bool) -> [UInt8] {
        let name = text.hasEscapes ? reader.unescaped(text) : Array(reader.bytes[text.range])
        return ignoringCase ? name.map(Identifier.lowered) : name
    }
}
