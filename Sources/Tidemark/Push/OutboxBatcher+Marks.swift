import GRDB
import TidemarkWire

extension OutboxBatcher {
    /// A record with edits that no operation carries yet, by the number of its shadow. Their order is that of the first
    /// edits.
    struct Marked: Comparable {
        var mark: Int64
        var table: Int
        var row: Int64
        var group: String?
        /// Whether the row may be one of the first capture that nobody has touched since.
        var mayBeSeed = false

        static func < (lhs: Marked, rhs: Marked) -> Bool {
            (lhs.mark, lhs.table, lhs.row) < (rhs.mark, rhs.table, rhs.row)
        }
    }

    /// Returns the next marks of the scope.
    func marked(_ tables: [RecordTable], after last: Marked?, limit: Int) throws -> [Marked] {
        guard limit > 0 else { return [] }
        let parts = tables.enumerated().flatMap { index, table in
            table.shape.placesSQL(scope.scope).map { place in
                let isBehind =
                    last.map {
                        """
                        AND tidemark_mark >= \($0.mark)
                        AND (tidemark_mark, \(index), tidemark_row) > (\($0.mark), \($0.table), \($0.row))
                        """
                    } ?? ""
                return """
                    SELECT * FROM (SELECT tidemark_mark AS mark, \(index) AS part, tidemark_row AS row,
                    tidemark_group, tidemark_edited IS \(Shadow.seedStamp)
                    FROM \(table.shape.shadowSQL) WHERE tidemark_mark > 0 AND \(place) \(isBehind)
                    ORDER BY tidemark_mark LIMIT \(limit))
                    """
            }
        }
        guard !parts.isEmpty else { return [] }
        let sql = parts.joined(separator: " UNION ALL ") + " ORDER BY mark, part, row LIMIT \(limit)"
        return try Query(db, sql).rows(db) {
            Marked(
                mark: $0.integer(0), table: Int($0.integer(1)), row: $0.integer(2), group: $0.optionalText(3),
                mayBeSeed: $0.integer(4) == 1)
        }
    }
}

// MARK: - Rows of the first capture

/// An app's first sync may send all that its tables hold. Rows that are as they stood then are sealed in runs: one
/// statement reads them, few write their operations, and one takes their marks.
extension OutboxBatcher {
    /// Seals a run of such rows, from a marked one on.
    ///
    /// - Returns: the number of the last one's shadow; `nil` where the first row has to be looked at by itself.
    func sealSeeds(
        _ batch: inout Batch, _ table: RecordTable, from first: Marked, _ budget: inout Budget
    ) throws -> Int64? {
        let shape = table.shape
        let declared = declarations.entity(shape.name)
        guard areSealedInRuns(batch, table, declared) else { return nil }
        let hasher = RowHash(shape)
        var sealed: [Outbox.Sealed] = []
        var seeds: [SealedSeed] = []
        var last: Int64?
        try visitSeeds(table, from: first, limit: budget.left) { seed in
            guard !budget.isSpent, let operation = try operation(of: seed, shape, declared, batch) else { return false }
            let key = batch.numbers.take()
            sealed.append(
                Outbox.Sealed(operation, key: key, scope: scope.scope, editedAt: seed.shadow.since, now: now))
            let hash = hasher.hash(ManifestKey.encode(seed.id), seed.shadow.cells)
            seeds.append(SealedSeed(hash: hash, shadow: seed.row))
            batch.dependence.note(operation, shape, seed.id, number: key.number)
            if batch.hasRefusals {
                try Outbox.forgetLocalRefusals(db, entity: shape.name, record: seed.id.text)
            }
            budget.take(count: 1, bytes: operation.fields.bytes.count + Self.operationBytes)
            last = seed.row
            return true
        }
        guard let last else { return nil }
        try Outbox.seal(db, sealed)
        let before = db.lastInsertedRowID - Int64(sealed.count)
        batch.made? += zip(sealed, seeds).enumerated().map { place, made in
            var entry = made.0.entry(id: before + Int64(place) + 1)
            entry.seed = made.1
            return entry
        }
        try Query(db, table.seedsUnmark).execute([.integer(first.mark), .integer(first.row), .integer(last)])
        return last
    }

    /// A row of the first capture.
    private struct Seed {
        let row: Int64
        let id: RecordID
        let shadow: Shadow
    }

    /// Whether nothing but the row itself has a say in its operation.
    private func areSealedInRuns(_ batch: Batch, _ table: RecordTable, _ declared: EntityDeclaration) -> Bool {
        table.mayRun && !batch.hasKnownVersions && !batch.hasBlocked && batch.identity == nil && batch.group == nil
            && batch.order.isUntouched && !batch.dependence.hasReferences(in: table.shape)
            && declared.direction != .pull && !table.shape.data.contains { declared.isServerField($0.name) }
    }

    /// Visits rows that are as their shadows have them and have no operation, until one is otherwise or `body` has
    /// enough.
    private func visitSeeds(
        _ table: RecordTable, from first: Marked, limit: Int, _ body: (Seed) throws -> Bool
    ) throws {
        let shape = table.shape
        let found = try Query(db, table.seedsSelect)
        found.bind([.integer(first.mark), .integer(first.row), .text(shape.name), .integer(Int64(limit))])
        defer { found.reset() }
        var shadow = Shadow(state: .absent, cells: [], bases: [Shadow.seedBase: 0], edited: Shadow.seedStamp)
        let rowStart = 3 + shape.key.count
        while try found.step(db), found.integer(1) == 1, let id = shape.recordID(found.cells(3..<rowStart)) {
            shadow.since = found.optionalInteger(2)
            shadow.cells = found.cells(rowStart..<(rowStart + shape.data.count))
            guard try body(Seed(row: found.integer(0), id: id, shadow: shadow)) else { return }
        }
    }

    /// The insert of a row; `nil` where no server would take it.
    private func operation(
        of seed: Seed, _ shape: TableSchema, _ declared: EntityDeclaration, _ batch: Batch
    ) throws -> Operation? {
        let row = seed.shadow.cells
        guard var operation = edit(shape, seed.id, seed.shadow, row, [], base: 0) else { return nil }
        try complete(&operation, declared, seed.shadow, batch, RecordName(entity: shape.name, record: seed.id.text))
        return misfit(operation, shape, row, []) == nil ? operation : nil
    }
}
