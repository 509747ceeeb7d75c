import GRDB
import TidemarkWire

/// An app's first sync may send all that its tables hold. Such rows are sealed a part at a time: one statement reads
/// them, and few write their operations; they get no shadows.
extension OutboxBatcher {
    /// Seals what is left of the first captures of the scope's tables, as far as there is room. A table in which other
    /// things have a say in an operation gets shadows and marks instead. Returns whether all are sealed that wait for
    /// nothing: until then no edit is looked at, since the shadow of one may take its row for the server's, and others
    /// may refer to such rows.
    func sealFirstCaptures(_ batch: inout Batch, _ tables: [RecordTable], _ budget: inout Budget) throws -> Bool {
        guard try FirstCapture.isLeft(db, in: scope.scope) else { return true }
        return try budget.withLimit(runLimit(tables, batch)) { budget in
            for table in tables {
                while let part = try FirstCapture.part(db, table.shape.name) {
                    guard try FirstCapture.scope(db, table.shape.name) == nil else { break }
                    guard !budget.isSpent else { return false }
                    guard try areSealedByKeys(batch, table) else {
                        try FirstCapture.unfold(db, table.shape)
                        break
                    }
                    try sealPart(part, &batch, table, &budget)
                }
            }
            return true
        }
    }

    /// A push counts as long after this many full requests. Its end is the last half as many.
    private static let longPush = 24

    /// How many rows a request takes. Towards the end of a long push it takes fewer from one to the next, down to a
    /// quarter: SQLite keeps the pages that taken operations leave, and with smaller requests the history's blocks fill
    /// them instead of new ones.
    private func runLimit(_ tables: [RecordTable], _ batch: Batch) throws -> Int {
        guard batch.numbers.next > Int64(Self.longPush * operationLimit) else { return operationLimit }
        let requests = Self.longPush / 2
        let end = requests * operationLimit
        let left = try tables.reduce(0) { try $0 + FirstCapture.left(db, $1.shape.name, upTo: end).untouched }
        return max(1, operationLimit / 4, min(operationLimit, left / requests))
    }

    /// Whether nothing but the row itself has a say in its operation.
    private func areSealedByKeys(_ batch: Batch, _ table: RecordTable) throws -> Bool {
        let declared = declarations.entity(table.shape.name)
        return try FirstCapture.mayKeep(table.shape, db) && !batch.hasKnownVersions && !batch.hasBlocked
            && batch.identity == nil && !batch.dependence.hasReferences(in: table.shape)
            && declared.direction != .pull && !table.shape.data.contains { declared.isServerField($0.name) }
    }

    private func sealPart(
        _ part: FirstCapture.Part, _ batch: inout Batch, _ table: RecordTable, _ budget: inout Budget
    ) throws {
        let shape = table.shape
        let run = try read(part, &batch, shape, &budget)
        for row in run.unsendable { try mark(row, part, table) }
        try sealRun(run, &batch, shape)
        if let next = run.next {
            try FirstCapture.goOn(db, shape, part, from: next)
        } else {
            try FirstCapture.drop(db, part)
        }
    }

    /// Rows of a part, in the order of their keys.
    private struct Run {
        var sealed: [Outbox.Sealed] = []
        var hashes: [UInt64] = []
        /// The keys of the first and of the last row.
        var ends: (first: Cell, last: Cell)?
        /// Rows that no server would take.
        var unsendable: [(key: Cell, row: [Cell])] = []
        /// The first row for which there was no room.
        var next: Cell?
    }

    private func read(
        _ part: FirstCapture.Part, _ batch: inout Batch, _ shape: TableSchema, _ budget: inout Budget
    ) throws -> Run {
        let declared = declarations.entity(shape.name)
        let areEdited = try FirstCapture.meetEdits(db, shape, part)
        let found = try Query(db, FirstCapture.rows(shape, areEdited: areEdited))
        found.bind(part.ends)
        defer { found.reset() }
        let hasher = RowHash(shape)
        var run = Run()
        var shadow = Shadow(
            state: .absent, cells: [], bases: [Shadow.seedBase: 0], since: part.capturedAt, edited: Shadow.seedStamp)
        while try found.step(db) {
            let key = found.cell(0)
            guard !budget.isSpent else {
                run.next = key
                break
            }
            guard let id = shape.recordID([key]) else { continue }
            shadow.cells = found.cells(1..<(1 + shape.data.count))
            guard let operation = try operation(of: shadow, id, shape, declared, batch) else {
                run.unsendable.append((key, shadow.cells))
                continue
            }
            let number = batch.numbers.nextKey()
            run.sealed.append(
                Outbox.Sealed(operation, key: number, scope: scope.scope, editedAt: shadow.since, now: now))
            run.hashes.append(hasher.hash(PackedID.encode(id), shadow.cells))
            run.ends = (run.ends?.first ?? key, key)
            batch.dependence.noteInsert(operation, shape, id, number: number.number)
            if batch.hasRefusals { try Outbox.forgetLocalRefusals(db, entity: shape.name, record: id.text) }
            budget.spend(count: 1, bytes: operation.fields.bytes.count + Self.operationBytes)
        }
        return run
    }

    /// The insert of a row; `nil` where no server would take it.
    private func operation(
        of shadow: Shadow, _ id: RecordID, _ shape: TableSchema, _ declared: EntityDeclaration, _ batch: Batch
    ) throws -> Operation? {
        guard var operation = edit(shape, id, shadow, shadow.cells, [], base: 0) else { return nil }
        try complete(&operation, declared, shadow, batch, RecordName(entity: shape.name, record: id.text))
        return unsendable(operation, shape, shadow.cells, []) == nil ? operation : nil
    }

    /// Marks a row that no server would take: the batch refuses it when its mark comes up, with the reason.
    private func mark(
        _ unsendable: (key: Cell, row: [Cell]), _ part: FirstCapture.Part, _ table: RecordTable
    ) throws {
        let shadow = Shadow(
            state: .absent, cells: unsendable.row, bases: [Shadow.seedBase: 0], mark: part.mark,
            since: part.capturedAt, edited: Shadow.seedStamp)
        try table.writeShadow(db, [unsendable.key], shadow)
    }

    private func sealRun(_ run: Run, _ batch: inout Batch, _ shape: TableSchema) throws {
        guard let ends = run.ends else { return }
        try Outbox.seal(db, run.sealed)
        let last = db.lastInsertedRowID
        let first = last - Int64(run.sealed.count) + 1
        let number = try SealedRun.add(db, shape.name, in: scope.scope, ends, operations: first...last)
        batch.made? += zip(run.sealed, run.hashes).enumerated().map { place, row in
            var entry = row.0.entry(id: first + Int64(place))
            entry.seed = SealedSeed(hash: row.1, run: number)
            return entry
        }
    }
}
