package import TidemarkWire

/// How an operation that a device replays out of a lost history meets the record as it is now: what it becomes in
/// this history, so that in the end the record is as it was, whichever device comes back first (I11).
///
/// Every write has a place in the order of the lost history: its version there; its own version, where both histories
/// have it; and behind everything, where it was made in this history after the two had parted.
package struct ReplayMerge: Hashable, Sendable {
    /// The way that the operation takes from here.
    package enum Course: Hashable, Sendable {
        /// The entity's policy decides on this operation.
        case goesOn(Operation)
        /// The policy decides on this operation too, but it begins a record whose insert has not come back yet.
        case begins(Operation)
        /// A later write stands, and the operation changes nothing.
        case stands
        /// The record is written like this, whatever the policy says: `nil` deletes it, and fields are those that
        /// outlive a deletion.
        case write(DataObject?)
    }

    /// The operation's own place; `nil` for one that had no version yet, and so is later than all that had.
    package let original: Version?
    /// The last version that the operation's history has in common with this one.
    private let shared: Version
    /// The same of the history that its base is of.
    private let sharedBase: Version

    package init(_ original: Operation.Original, of operation: Operation, in history: ScopeHistory) {
        func shared(_ name: String) -> Version { Epoch(text: name).map { history.shared(with: $0) } ?? history.head }
        self.original = original.version
        self.shared = shared(original.epoch)
        sharedBase = shared(operation.epoch ?? original.epoch)
    }

    /// How the writes of the operation are remembered.
    package var mark: Originals.Mark { original.map { .original($0) } ?? .native }

    package func course(
        of operation: Operation, on current: Merge.Current?, declaration: EntityDeclaration
    ) -> Course {
        let record = current.map { ReplayedRecord($0, shared: shared, declaration: declaration) }
        switch (operation.kind, record) {
        case (.delete, let record?):
            return record.current.data == nil ? delete(again: operation, record) : delete(operation, record)
        case (.delete, nil): return .write(nil)
        case (_, nil): return isLost(operation) ? .begins(operation.withoutBase) : .goesOn(operation)
        case (_, let record?):
            return record.current.data == nil ? edit(deleted: operation, record) : edit(operation, record)
        }
    }

    /// Whether what stands at a place is later than the operation, or the operation itself.
    private func yields(to place: Version) -> Bool { original.map { $0 <= place } ?? false }

    /// Whether a deletion is later. One of the same version had no effect: the edit has won over it.
    private func yields(toDeletion place: Version) -> Bool { original.map { $0 < place } ?? false }

    /// Whether the row that the edit was made on is not in this history.
    private func isLost(_ operation: Operation) -> Bool { operation.baseVersion.map { $0 > sharedBase } ?? false }
}

// MARK: - Edits

extension ReplayMerge {
    private func edit(_ operation: Operation, _ record: ReplayedRecord) -> Course {
        var edit = operation
        // Where the later edit wins, the order in which edits come does not matter anyway.
        if record.declaration.conflict != .lastEditWins {
            let isCovered = yields(toDeletion: record.current.originals.deletion)
            edit.fields = operation.fields.filter {
                !isCovered && !yields(to: record.place(of: operation.fields.name($0)))
            }
            if edit.fields.fields.isEmpty, !operation.fields.fields.isEmpty { return .stands }
        }
        edit.fieldBases = [:]
        for field in edit.fields.fields {
            let name = edit.fields.name(field)
            let place = record.place(of: name)
            guard let base = place == 0 ? 0 : operation.base(ofField: name) else { continue }
            let isSeen = place <= base
            edit.fieldBases[name] = isSeen ? record.current.version : min(base, sharedBase, shared)
        }
        edit.baseVersion = operation.baseVersion.map { min($0, sharedBase, shared) }
        return .goesOn(edit)
    }

    private func edit(deleted operation: Operation, _ record: ReplayedRecord) -> Course {
        if yields(toDeletion: record.deletionPlace) { return .stands }
        guard let base = operation.baseVersion else { return .goesOn(operation) }
        // Made on a row that came after this deletion.
        if base > record.deletionPlace { return .begins(operation.withoutBase) }
        var edit = operation
        edit.baseVersion = min(base, sharedBase, shared)
        edit.fieldBases = [:]
        return .goesOn(edit)
    }
}

// MARK: - Deletions

extension ReplayMerge {
    /// A deletion that is later than the one which stands has to be remembered: what lies between must not come back.
    private func delete(again operation: Operation, _ record: ReplayedRecord) -> Course {
        // A deletion without a version is later than all that was lost, also than the row that it has deleted.
        let isLater = original.map { $0 > record.deletionPlace } ?? isLost(operation)
        return isLater ? .write(nil) : .stands
    }

    private func delete(_ operation: Operation, _ record: ReplayedRecord) -> Course {
        guard let data = record.current.data else { return .stands }
        if let original {
            if record.wasMadeAnew(after: original, data) {
                // Where edits win, a later one has revived the whole record.
                if record.declaration.deletes == .lose { return .stands }
                let kept = data.filter { record.place(of: data.name($0)) > original }
                return kept == data ? .stands : .write(kept)
            }
            if record.isOfThisHistory { return .stands }
        }
        var delete = operation
        let base = operation.baseVersion
        let isSeen = base.map { base in data.fields.allSatisfy { record.place(of: data.name($0)) <= base } } ?? false
        delete.baseVersion = isSeen ? record.current.version : base.map { min($0, sharedBase, shared) }
        return .goesOn(delete)
    }
}

/// A record as it stands, seen from a lost history.
private struct ReplayedRecord {
    let current: Merge.Current
    let shared: Version
    let declaration: EntityDeclaration
    private let lookup: FieldLookup?

    init(_ current: Merge.Current, shared: Version, declaration: EntityDeclaration) {
        self.current = current
        lookup = current.data?.lookup
        self.shared = shared
        self.declaration = declaration
    }

    /// Where a field's value stands in the order of the lost history. A field that the record lacks was written by
    /// nobody, unless a deletion has taken it: the inserts of two versions of an app need not name the same fields.
    func place(of name: ArraySlice<UInt8>) -> Version {
        if let lookup, lookup[name] == nil {
            return place(.native, version: current.originals.remade)
        }
        return place(current.originals.mark(of: name), version: current.fieldVersions[name])
    }

    /// Where the record's deletion stands.
    var deletionPlace: Version {
        max(ReplayMerge.place(current.originals.common, current.version, shared: shared), current.originals.deletion)
    }

    /// Whether an insert was replayed that is later than a deletion: a deletion leaves nothing for later edits.
    func wasMadeAnew(after deletion: Version, _ data: DataObject) -> Bool {
        data.fields.contains { field in
            guard case .original(let version) = current.originals.mark(of: data.name(field)) else { return false }
            return version > deletion
        }
    }

    /// Whether the record was begun after the two histories had parted, and by nothing that was replayed.
    var isOfThisHistory: Bool {
        place(current.originals.common, version: current.fieldVersions.common) == .max
    }

    private func place(_ mark: Originals.Mark, version: Version) -> Version {
        // Without versions per field, what is not marked may be as old as the parting of the two histories.
        let version = declaration.conflict == .lastWriteWins ? min(version, shared) : version
        return ReplayMerge.place(mark, version, shared: shared)
    }
}

extension ReplayMerge {
    fileprivate static func place(_ mark: Originals.Mark, _ version: Version, shared: Version) -> Version {
        switch mark {
        case .native: version <= shared ? version : .max
        case .nobody: 0
        case .original(let version): version
        }
    }
}

extension Operation {
    fileprivate var withoutBase: Operation {
        var insert = self
        insert.baseVersion = nil
        insert.fieldBases = [:]
        return insert
    }
}

extension ScopeHistory {
    /// Whether what a device would replay is in this history already. The epoch before the first write had no versions,
    /// so that its name does not say in which history an operation was.
    package func contains(_ original: Operation.Original) -> Bool {
        guard let version = original.version, let epoch = Epoch(text: original.epoch), knows(epoch), !epoch.isBeforeAll
        else { return false }
        return version <= shared(with: epoch)
    }
}
