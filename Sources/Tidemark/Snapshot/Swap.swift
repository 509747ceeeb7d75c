import GRDB
import TidemarkWire

/// Pages of a snapshot are staged as they come, and an entity's rows are swapped in when they are all there: a
/// snapshot replaces, it never merges (T7). What it does not hold goes; edits are rebased over what it holds.
struct Swap {
    let db: Database
    let schema: SyncSchema
    let declarations: Declarations
    let now: Int64

    /// Keys that are looked at together while what the snapshot does not hold is taken out.
    private static let batch = 500

    /// Stages a page, and swaps in the entities that it completes.
    func stagePage(
        _ changes: UnsafeRawBufferPointer, isLast: Bool, _ record: inout ScopeRecord
    ) throws -> Applier.Outcome {
        let (named, bytes, rows) = try Self.entities(of: changes)
        // As this file spells them, where it has them.
        let entities = named.map { schema[$0]?.name ?? $0 }
        guard var bootstrap = record.bootstrap else { return Applier.Outcome() }
        guard bootstrap.swapped.allSatisfy({ !entities.contains($0) }) else {
            // The order of entities has changed: what is here could not be told from what is still to come.
            throw Failure.snapshotChanged(bootstrap.scope)
        }
        bootstrap.rows += Int64(rows)
        var whole = [bootstrap.entity].compactMap { $0 }
        for entity in entities where !whole.contains(entity) { whole.append(entity) }
        bootstrap.entity = whole.last
        if isLast {
            whole += schema.shapes(in: bootstrap.scope).map(\.name)
                .filter { !whole.contains($0) && !bootstrap.swapped.contains($0) }
        } else if !whole.isEmpty {
            whole.removeLast()
        }
        var outcome = Applier.Outcome()
        if !whole.isEmpty { outcome = try swap(Set(whole), changes, record, isEmpty: bootstrap.rows == 0) }
        (outcome.received, outcome.bytes) = (rows, bytes)
        bootstrap.swapped += whole
        if !isLast {
            // Pages of entities that stand now are not needed any more; this one may hold rows of the next.
            if !whole.isEmpty { try Bootstrap.dropStaged(db, bootstrap.scope) }
            try Bootstrap.stage(db, bootstrap.scope, changes)
        }
        record.bootstrap = bootstrap
        return outcome
    }

    /// The entities of a page in their order, with the bytes of their rows, and how many rows there are.
    private static func entities(of changes: UnsafeRawBufferPointer) throws -> ([String], EntityBytes, Int) {
        var entities: [String] = []
        var bytes = EntityBytes()
        var last: Range<Int>?
        var rows = 0
        var reader = JSONReader(changes)
        try reader.enterArray()
        while try reader.nextElement() {
            rows += 1
            let start = reader.index
            guard let change = try IncomingChange.read(from: &reader) else { continue }
            bytes.add(change, in: reader, bytes: reader.index - start)
            let name = change.entity.range
            if let last, reader.bytes[last].elementsEqual(reader.bytes[name]) { continue }
            last = name
            entities.append(reader.string(change.entity))
        }
        return (entities, bytes, rows)
    }

    /// - Parameter isEmpty: whether the snapshot has brought no row at all.
    private func swap(
        _ entities: Set<String>, _ changes: UnsafeRawBufferPointer, _ record: ScopeRecord, isEmpty: Bool
    ) throws -> Applier.Outcome {
        let applier = try Applier(
            db, schema: schema, record: record, declarations: declarations, now: now, entities: entities,
            keepsFirstCapture: isEmpty)
        guard let bootstrap = record.bootstrap, !applier.tables.isEmpty else { return applier.outcome }
        applier.rememberRowsAbove = bootstrap.version
        let seen = try SeenRecords(db)
        for page in try Bootstrap.staged(db, bootstrap.scope) {
            try Bootstrap.stagedPage(db, page).withUnsafeBytes { try applier.applyChanges($0, noting: seen) }
        }
        try applier.applyChanges(changes, noting: seen)
        for table in applier.tables.values.sorted(by: { $0.shape.name < $1.shape.name }) {
            try takeOut(of: table, applier, at: bootstrap.version)
        }
        try seen.clear(db)
        try applier.resolveUniqueValues()
        try applier.finish()
        return applier.outcome
    }

    /// Takes out the records that the snapshot does not hold: they were deleted. Events stay, because they are only
    /// ever appended, and so do the rows of a table that is only pushed, which never come back.
    private func takeOut(of table: ApplyTable, _ applier: Applier, at version: Version) throws {
        let declared = declarations.entity(table.shape.name)
        guard declared.kind == .state, declared.direction != .push else { return }
        // A snapshot says nothing of a record that was made here and that no server has. A first device has its whole
        // file of such records.
        let leavesUnsent = !table.shape.isScopedByColumn && table.shape.keepsDeleted == nil
        for place in ShadowTable(table.shape).placesSQL {
            var last: [Cell]?
            while true {
                let keys = try SeenRecords.others(
                    db, table.shape, in: place, scope: applier.scope, unsent: !leavesUnsent, after: last,
                    limit: Self.batch)
                for key in keys {
                    guard let id = table.shape.recordID(key),
                        try !SeenRecords.contains(db, table.shape.name, id)
                    else { continue }
                    try applier.takeOut(table, id, key, at: version)
                }
                last = keys.last
                guard keys.count == Self.batch else { break }
            }
        }
        for record in try QuarantinedRow.records(db, table.shape.name, applier.scope) {
            guard let id = RecordID(record), try !SeenRecords.contains(db, table.shape.name, id) else { continue }
            guard let key = table.shape.key(of: id) else {
                try QuarantinedRow.remove(db, table.shape.name, record, applier.scope.name)
                continue
            }
            if try leavesUnsent && table.records.shadowHead(db, key)?.state == .absent { continue }
            try applier.takeOut(table, id, key, at: version)
        }
    }
}

extension Applier {
    /// Takes out a record that a snapshot as of `version` does not hold, unless more is known of it than the snapshot
    /// could say. Edits of it that are not sent yet stay, as edits of a deleted record.
    fileprivate func takeOut(_ table: ApplyTable, _ id: RecordID, _ key: [Cell], at version: Version) throws {
        let known = try KnownVersions.version(db, scope, table.shape.name, id.text) ?? -1
        guard known <= version else { return }
        manifest.look(table.shape.name, id)
        try keepDeleted(table, id, key)
        if try quarantineForOtherScope(table, id, key, version: version, incoming: nil) { return }
        if let shadow = try table.records.shadow(db, key) {
            guard shadow.state == .known, shadow.version ?? -1 <= version else { return }
            try noteGone(table, id, key)
            try rebase(table, id, key, shadow, version: version, known: known, incoming: nil)
        } else {
            try noteGone(table, id, key)
            try applyServerRow(table, id, key, version: version, incoming: nil)
        }
    }

    /// Its children are looked at as after any deletion. A record that moved to another scope is not gone, nor one that
    /// is on its way back after a loss.
    private func noteGone(_ table: ApplyTable, _ id: RecordID, _ key: [Cell]) throws {
        guard !table.shape.isScopedByColumn, record.bootstrap?.hasLost != true else { return }
        // The snapshot does not say when the record was deleted, but that was after the version that this device has
        // had.
        try noteTombstone(table, id, key, version: record.base)
    }
}
