/// Versions by the canonical names of fields, in the order of the names' bytes: as small in memory as on the wire, so
/// that a request that names many cannot hold many times its own bytes.
package struct FieldBases: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        var name: Range<Int>
        var version: Version
    }

    private var names: [UInt8] = []
    private var entries: [Entry] = []

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }
    package var newest: Version? { entries.lazy.map(\.version).max() }

    /// Every name with its version, in the order of the names.
    package var all: some Sequence<(name: ArraySlice<UInt8>, version: Version)> {
        entries.lazy.map { (name(of: $0), $0.version) }
    }

    package subscript(_ name: ArraySlice<UInt8>) -> Version? {
        get {
            let place = place(of: name)
            return holds(name, at: place) ? entries[place].version : nil
        }
        set {
            let place = place(of: name)
            switch (newValue, holds(name, at: place)) {
            case (let version?, true): entries[place].version = version
            case (let version?, false): entries.insert(Entry(name: append(name), version: version), at: place)
            case (nil, true): entries.remove(at: place)
            case (nil, false): break
            }
        }
    }

    private func name(of entry: Entry) -> ArraySlice<UInt8> {
        names[entry.name]
    }

    private mutating func append(_ name: ArraySlice<UInt8>) -> Range<Int> {
        let start = names.count
        names += name
        return start..<names.count
    }

    private func holds(_ name: ArraySlice<UInt8>, at place: Int) -> Bool {
        place < entries.count && self.name(of: entries[place]) == name
    }

    /// Where a name stands, or would stand.
    private func place(of name: ArraySlice<UInt8>) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if self.name(of: entries[middle]).lexicographicallyPrecedes(name) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }
}

extension FieldBases {
    /// Reads an object of versions.
    init(from reader: inout JSONReader) throws(JSONError) {
        var seen = MemberNames()
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader, ignoringCase: true)
            let entry = append(DataObject.canonical(reader.string(name))[...])
            entries.append(Entry(name: entry, version: try reader.readInteger(in: 0...Int64.max)))
        }
        let names = names
        entries.sort { names[$0.name].lexicographicallyPrecedes(names[$1.name]) }
    }
}

extension FieldBases {
    package static func == (lhs: FieldBases, rhs: FieldBases) -> Bool {
        lhs.entries.count == rhs.entries.count && zip(lhs.all, rhs.all).allSatisfy { $0 == $1 }
    }

    package func hash(into hasher: inout Hasher) {
        for (name, version) in all {
            hasher.combine(name)
            hasher.combine(version)
        }
    }
}

extension FieldBases: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (ArraySlice<UInt8>, Version)...) {
        for (name, version) in elements { self[name] = version }
    }
}
