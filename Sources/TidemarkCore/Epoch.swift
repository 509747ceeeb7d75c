package import TidemarkWire

/// The name of a scope's history as far as one opening of the store: which opening it was, where it began, and which
/// came before it, so that two histories which parted can be told how far they are the same (T19).
package struct Epoch: Hashable, Sendable {
    /// An opening before it: enough to recognise it by, and where it began.
    package struct Ancestor: Hashable, Sendable {
        package var tag: Int64
        package var start: Version

        package init(of incarnation: ScopeHistory.Incarnation) {
            tag = incarnation.tag
            start = incarnation.start
        }

        fileprivate init(tag: Int64, start: Version) {
            self.tag = tag
            self.start = start
        }
    }

    /// Openings that are named beside the last one. A store that goes back by more of them is still noticed.
    package static let ancestorLimit = 4

    /// The opening's random id; 0 for a scope that nobody has written to.
    package var id: Int64
    /// The head that it found.
    package var start: Version
    /// The openings before it, the latest first.
    package var ancestors: [Ancestor]

    package init(id: Int64, start: Version, ancestors: [Ancestor] = []) {
        self.id = id
        self.start = start
        self.ancestors = ancestors
    }

    package var isBeforeAll: Bool { id == 0 }

    /// Whether a version that was heard of while the history had another name is in the history of this one. Beyond the
    /// openings that the name lists nothing is known, and the answer is no.
    package func contains(_ version: Version, of other: Epoch) -> Bool {
        if id == other.id { return true }
        var end = start
        for ancestor in ancestors {
            if ancestor.tag == ScopeHistory.Incarnation(id: other.id, start: other.start).tag { return version <= end }
            end = ancestor.start
        }
        return false
    }
}

// MARK: - As a text

extension Epoch {
    /// The epoch as it stands on the wire; to a device it is an opaque name.
    package var text: String {
        var writer = ByteWriter()
        write(to: &writer)
        return Base64URL.encode(writer.bytes)
    }

    /// `nil` for a text that no Tidemark server has written.
    package init?(text: String) {
        guard text.utf8.count <= Operation.Original.epochLimit, let bytes = Base64URL.decode(text) else { return nil }
        var reader = ByteReader(bytes)
        guard let epoch = Epoch(from: &reader), reader.isAtEnd else { return nil }
        self = epoch
    }

    /// The same of two names as a device has them. A name that cannot be read tells nothing, and the answer is no.
    package static func contains(_ version: Version, of known: String, in next: String) -> Bool {
        if known == next { return true }
        guard let known = Epoch(text: known), let next = Epoch(text: next) else { return false }
        // The epoch before the first write has no versions, so every history continues it.
        return known.isBeforeAll || next.contains(version, of: known)
    }

    func write(to writer: inout ByteWriter) {
        writer.integer(id)
        writer.integer(start)
        writer.integer(Int64(ancestors.count))
        for ancestor in ancestors {
            writer.integer(ancestor.tag)
            writer.integer(ancestor.start)
        }
    }

    init?(from reader: inout ByteReader) {
        guard let id = reader.integer(), let start = reader.integer(), start >= 0, let count = reader.integer(),
            0...Int64(Self.ancestorLimit) ~= count
        else { return nil }
        self.init(id: id, start: start)
        for _ in 0..<count {
            guard let tag = reader.integer(), let start = reader.integer() else { return nil }
            ancestors.append(Ancestor(tag: tag, start: start))
        }
    }
}

// MARK: - In a store's history

extension ScopeHistory.Incarnation {
    /// Fewer bits than the id has, for they travel with every operation, and enough among the openings of one store.
    var tag: Int64 { id & 0xfff_ffff }
}

extension ScopeHistory {
    /// The name of the history up to a version.
    package func epoch(of version: Version) -> Epoch {
        guard let index = incarnations.lastIndex(where: { $0.start < version }) else { return Epoch(id: 0, start: 0) }
        let before = incarnations[..<index].suffix(Epoch.ancestorLimit).reversed()
        return Epoch(
            id: incarnations[index].id, start: incarnations[index].start, ancestors: before.map(Epoch.Ancestor.init))
    }

    /// Whether the opening that a name stands for has written here, as far as this store knows.
    package func knows(_ epoch: Epoch) -> Bool {
        epoch.isBeforeAll || incarnations.contains { $0.id == epoch.id }
    }

    /// The last version that this history has in common with another one.
    ///
    /// Exact where the openings that the other's name lists reach back to where the two parted; else the last opening
    /// that began before all of those is taken for that place.
    package func shared(with epoch: Epoch) -> Version {
        if epoch.isBeforeAll { return head }
        if let index = incarnations.firstIndex(where: { $0.id == epoch.id }) { return end(of: index) }
        var below = epoch.start
        for ancestor in epoch.ancestors {
            if let index = incarnations.firstIndex(where: { $0.tag == ancestor.tag }) {
                return min(end(of: index), below)
            }
            below = ancestor.start
        }
        return (incarnations.map(\.start) + [head]).filter { $0 <= below }.max() ?? 0
    }

    /// The last version that an opening wrote, as this store has it.
    func end(of index: Int) -> Version {
        index + 1 < incarnations.endIndex ? incarnations[index + 1].start : head
    }
}
