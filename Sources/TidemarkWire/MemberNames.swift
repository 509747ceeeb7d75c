/// Notices a member that is given twice in one object, by the bytes of its name, and an object that has too many.
///
/// It keeps places in the document, and no copies of the names: an object of many small members must not cost many
/// times its bytes.
package struct MemberNames {
    /// The number of members up to which they are looked through one by one, as long as none is spelled with escapes:
    /// those would have to be resolved for each comparison.
    private static let few = 8

    private struct Entry {
        /// `nil` while they are looked through one by one.
        var hash: Int?
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
        let isAmongFew = table.isEmpty && entries.count < Self.few && !text.hasEscapes
        let hash = isAmongFew ? nil : Self.hash(text, reader, ignoringCase)
        guard !contains(text, hash, reader, ignoringCase) else {
            throw JSONError(.duplicateMember, at: text.range.lowerBound).inside(reader.string(text))
        }
        if entries.isEmpty { entries.reserveCapacity(Self.few) }
        entries.append(Entry(hash: hash, text: text))
        guard !isAmongFew else { return }
        if entries.count * 2 > table.count {
            table = Array(repeating: 0, count: max(Self.few * 4, table.count * 2))
            for place in entries.indices { enter(place, reader, ignoringCase) }
        } else {
            enter(entries.count - 1, reader, ignoringCase)
        }
    }

    private mutating func enter(_ place: Int, _ reader: JSONReader, _ ignoringCase: Bool) {
        let hash = entries[place].hash ?? Self.hash(entries[place].text, reader, ignoringCase)
        entries[place].hash = hash
        var slot = slot(of: hash)
        while table[slot] != 0 { slot = (slot + 1) & (table.count - 1) }
        table[slot] = UInt16(place + 1)
    }

    private func slot(of hash: Int) -> Int { hash & (table.count - 1) }

    private func contains(_ text: JSONReader.Text, _ hash: Int?, _ reader: JSONReader, _ ignoringCase: Bool) -> Bool {
        guard let hash, !table.isEmpty else {
            return entries.contains { Self.isSame($0.text, text, reader, ignoringCase) }
        }
        var slot = slot(of: hash)
        while table[slot] != 0 {
            let other = entries[Int(table[slot]) - 1]
            if other.hash == hash, Self.isSame(other.text, text, reader, ignoringCase) { return true }
            slot = (slot + 1) & (table.count - 1)
        }
        return false
    }

    /// Seeded anew for each process, so that nobody can choose names that meet.
    private static func hash(_ text: JSONReader.Text, _ reader: JSONReader, _ ignoringCase: Bool) -> Int {
        withBytes(text, reader) { name in
            var hasher = Hasher()
            if ignoringCase {
                for byte in name { hasher.combine(Identifier.lowered(byte)) }
            } else {
                hasher.combine(bytes: name)
            }
            return hasher.finalize()
        }
    }

    private static func isSame(
        _ left: JSONReader.Text, _ right: JSONReader.Text, _ reader: JSONReader, _ ignoringCase: Bool
    ) -> Bool {
        withBytes(left, reader) { left in
            withBytes(right, reader) { right in
                guard left.count == right.count else { return false }
                return ignoringCase ? Identifier.isSameName(left, right) : left.hasSameBytes(as: right)
            }
        }
    }

    private static func withBytes<Result>(
        _ text: JSONReader.Text, _ reader: JSONReader, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        guard text.hasEscapes else { return body(UnsafeRawBufferPointer(rebasing: reader.bytes[text.range])) }
        return reader.unescaped(text).withUnsafeBytes(body)
    }
}

extension JSONReader {
    /// Passes over a member that nobody here knows. It is looked through all the same: a reader that does know it might
    /// take another of two members of one name.
    package mutating func skipUnknown() throws(JSONError) {
        switch peek() {
        case UInt8(ascii: "{"):
            var seen = MemberNames()
            try enterObject()
            while let name = try nextMember() {
                try seen.insert(name, of: self)
                try skipUnknown()
            }
        case UInt8(ascii: "["):
            try enterArray()
            while try nextElement() { try skipUnknown() }
        default: try skip()
        }
    }
}
