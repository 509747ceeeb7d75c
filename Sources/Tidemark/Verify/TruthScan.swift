import GRDB
import TidemarkWire

/// How a scope stood when a comparison began. While it stands so, the server's rows as this device knows them are the
/// same, whatever the app writes meanwhile.
struct ScopeStand: Hashable, Sendable {
    var checkpoint: String
    var complete: Version
    var schemaVersion: Int64

    /// `nil` where the rows are not whole as of one version: in mid-walk, while it is filled, or with rows ahead.
    init?(_ db: Database, _ scope: Scope) throws {
        let record = try ScopeRecord.read(db, scope)
        guard let checkpoint = record.checkpoint, let complete = record.complete, record.isFilled,
            !record.isWalking, try Ahead.isEmpty(db, scope)
        else { return nil }
        self.checkpoint = checkpoint
        self.complete = complete
        schemaVersion = try Installation.schemaVersion(db)
    }
}

/// Another engine on this file applied something meanwhile.
struct StandMoved: Error {}

/// Reads one table's rows of one scope as the server has them, as far as this device knows: rows without edits as they
/// stand, beneath edits the shadow, and rows that are parked. In steps of a bounded number of rows, each in a
/// transaction of its own, so that nobody waits long: a step covers a key range, with its shadows.
struct TruthScan {
    static let stepRows = 2000

    let shape: TableShape
    let scope: Scope
    let stand: ScopeStand
    /// The range that is of interest, where the key's order is that of record ids; else the whole table is read.
    private let after: Cell?
    private let through: Cell?

    init(_ shape: TableShape, _ scope: Scope, _ stand: ScopeStand, after: String? = nil, through: String? = nil) {
        (self.shape, self.scope, self.stand) = (shape, scope, stand)
        let isOrdered = shape.key.count == 1 && shape.key[0].affinity == .text
        self.after = isOrdered ? after.map { Cell.text($0) } : nil
        self.through = isOrdered ? through.map { Cell.text($0) } : nil
    }

    func run(_ file: AppFile, into sums: OwnSums) async throws -> OwnSums {
        var sums = sums
        var last: [Cell]? = after.map { [$0] }
        while true {
            let (start, grown) = (last, sums)
            (last, sums) = try await file.read { db in
                guard try ScopeStand(db, scope) == stand else { throw StandMoved() }
                var sums = grown
                let end = try step(db, from: start, &sums)
                return (end, sums)
            }
            if last == nil { return sums }
        }
    }

    /// Reads the rows behind a key, and returns the key behind which to go on; `nil` at the end.
    private func step(_ db: Database, from start: [Cell]?, _ sums: inout OwnSums) throws -> [Cell]? {
        let keys = shape.key.map(\.sql)
        let rows = Span(keys, alias: "t", start: start, end: through.map { [$0] })
        let isEdited =
            "SELECT 1 FROM \(shape.shadowSQL) AS s WHERE "
            + keys.map { "s.\($0) = +t.\($0)" }.joined(separator: " AND ")
        var last: [Cell]?
        var count = 0
        try read(
            db,
            """
            SELECT \(list("t")) FROM \(shape.sql) AS t
            WHERE \(rows.condition) AND \(shape.isInSQL(scope, "t")) AND NOT EXISTS (\(isEdited))
            ORDER BY \(keys.map { "t.\($0)" }.joined(separator: ", ")) LIMIT \(Self.stepRows)
            """, rows.cells
        ) { key, cells in
            (last, count) = (key, count + 1)
            add(key, cells, &sums)
        }
        let isAtEnd = count < Self.stepRows
        let edited = Span(keys, alias: "t", start: start, end: isAtEnd ? through.map { [$0] } : last)
        try read(
            db,
            """
            SELECT \(list("t")) FROM \(shape.shadowSQL) AS t WHERE \(edited.condition)
            AND t.tidemark_state = \(Shadow.State.known.rawValue)
            \(shape.isScopedByColumn ? "AND t.tidemark_scope = \(literal(scope.name))" : "")
            """, edited.cells
        ) { key, cells in add(key, cells, &sums) }
        if isAtEnd { try addParked(db, &sums) }
        return isAtEnd ? nil : last
    }

    /// What the scope holds and the table does not. The shadow of an edit made on such a row says it better.
    private func addParked(_ db: Database, _ sums: inout OwnSums) throws {
        let table = RecordTable(shape)
        for record in try Parked.records(db, shape.name, scope) {
            guard let id = RecordID(record), let key = shape.key(of: id),
                let cells = try Parked.entry(db, shape, id, scope.name)?.cells
            else { continue }
            if let shadow = try table.shadow(db, key) {
                guard shape.isScopedByColumn, shadow.scope != scope.name else { continue }
            } else if let row = try table.row(db, key), shape.scope(ofKey: key, row) == scope {
                continue
            }
            sums.add(id, cells)
        }
    }

    private func add(_ key: [Cell], _ cells: [Cell], _ sums: inout OwnSums) {
        // A key that cannot travel is on this device only.
        guard let id = shape.recordID(key) else { return }
        sums.add(id, cells)
    }

    private func list(_ alias: String) -> String {
        shape.columns.map { "\(alias).\($0.sql)" }.joined(separator: ", ")
    }

    private func read(
        _ db: Database, _ sql: String, _ arguments: [Cell], _ visit: ([Cell], [Cell]) -> Void
    ) throws {
        let query = try Query(db, sql)
        query.bind(arguments)
        defer { query.clear() }
        while try query.step(db) {
            visit(query.cells(0..<shape.key.count), query.cells(shape.key.count..<shape.columns.count))
        }
    }

    /// A range of keys as SQL: behind `start`, up to and with `end`.
    private struct Span {
        let condition: String
        let cells: [Cell]

        init(_ keys: [String], alias: String, start: [Cell]?, end: [Cell]?) {
            let columns = keys.map { "\(alias).\($0)" }
            var conditions = columns.map { "\($0) IS NOT NULL" }
            var cells: [Cell] = []
            for (bound, sign) in [(start, ">"), (end, "<=")] {
                guard let bound else { continue }
                let marks = bound.indices.map { "?\(cells.count + $0 + 1)" }.joined(separator: ", ")
                let list = columns.joined(separator: ", ")
                conditions.append(bound.count == 1 ? "\(list) \(sign) \(marks)" : "(\(list)) \(sign) (\(marks))")
                cells += bound
            }
            condition = conditions.joined(separator: " AND ")
            self.cells = cells
        }
    }
}
