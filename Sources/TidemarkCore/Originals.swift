package import TidemarkWire

/// A record's memory of writes that devices replayed out of a lost history: the versions that they had there, so that a
/// lower one never beats a higher one, whichever comes first. A record without such writes needs nothing.
package struct Originals: Hashable, Sendable {
    /// The origin of a field's last write.
    package enum Mark: Hashable, Sendable {
        /// An edit of this history.
        case native
        /// Nobody: the record was begun by an edit of other fields, whose insert has not come back yet.
        case nobody
        /// An edit that was replayed; its version in the lost history.
        case original(Version)
    }

    private struct Exception: Hashable, Sendable {
        var name: ArraySlice<UInt8>
        var mark: Mark
    }

    /// The highest version of a deletion that was replayed; 0 for none.
    package private(set) var deletion: Version = 0
    /// The version of the last deletion of this history that the record was made anew after; 0 for none.
    package private(set) var remade: Version = 0
    /// The mark of every field that is not listed, and of a tombstone.
    package private(set) var common = Mark.native
    private var exceptions: [Exception] = []
    private var places = NamePlaces()

    package init() {}

    package static func == (lhs: Originals, rhs: Originals) -> Bool {
        (lhs.deletion, lhs.remade, lhs.common) == (rhs.deletion, rhs.remade, rhs.common)
            && lhs.exceptions == rhs.exceptions
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(deletion)
        hasher.combine(remade)
        hasher.combine(common)
        hasher.combine(exceptions)
    }

    package var isEmpty: Bool { deletion == 0 && remade == 0 && common == .native && exceptions.isEmpty }

    package func mark(of name: ArraySlice<UInt8>) -> Mark {
        places[name].map { exceptions[$0].mark } ?? common
    }

    /// The whole record was written.
    package mutating func noteAll(_ mark: Mark) {
        common = mark
        (exceptions, places) = ([], NamePlaces())
    }

    package mutating func note(_ names: [ArraySlice<UInt8>], _ mark: Mark) {
        // Replays are rare, and other writes should not pay for them.
        guard common != mark || !exceptions.isEmpty else { return }
        let noted = Set(names)
        let others = exceptions.filter { !noted.contains($0.name) }
        (exceptions, places) = ([], NamePlaces())
        for exception in others { append(exception) }
        if mark != common { for name in names { append(Exception(name: name, mark: mark)) } }
    }

    private mutating func append(_ exception: Exception) {
        exceptions.append(exception)
        places.append(exception.name)
    }

    package mutating func noteDeletion(_ version: Version) { deletion = max(deletion, version) }

    /// The record is made anew where this history had deleted it: fields that it lacks were deleted too.
    package mutating func noteRemade(after deletion: Version) { remade = deletion }
}

// MARK: - As bytes

extension Originals {
    /// `nil` where nothing is remembered.
    package var stored: [UInt8]? {
        guard !isEmpty else { return nil }
        var writer = ByteWriter()
        writer.integer(deletion)
        writer.integer(remade)
        writer.integer(common.number)
        for exception in exceptions {
            writer.run(exception.name)
            writer.integer(exception.mark.number)
        }
        return writer.bytes
    }

    package init(stored: [UInt8]?) {
        guard let stored else { return }
        var reader = ByteReader(stored)
        guard let deletion = reader.integer(), let remade = reader.integer(), let common = reader.integer()
        else { return }
        (self.deletion, self.remade) = (deletion, remade)
        self.common = Mark(number: common)
        while let name = reader.run(), let mark = reader.integer() {
            append(Exception(name: name, mark: Mark(number: mark)))
        }
    }
}

extension Originals.Mark {
    fileprivate var number: Int64 {
        switch self {
        case .native: -1
        case .nobody: 0
        case .original(let version): version
        }
    }

    fileprivate init(number: Int64) { self = number < 0 ? .native : number == 0 ? .nobody : .original(number) }
}
