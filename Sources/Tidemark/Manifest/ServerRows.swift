import GRDB
import TidemarkWire

/// Reads one table's rows of one scope as the server has them, as far as this device knows: rows without edits as they
/// stand, beneath edits the shadow, and rows that are kept outside the table.
struct ServerRows {
    static let stepRows = 2000

    let shape: TableSchema
    let scope: Scope

    /// Reads the rows behind a key, up to and with `through`, and returns the key behind which to go on; `nil` at the
    /// end. A step covers a key range with its shadows.
    func step(
        _ db: Database, from start: [Cell]?, through: Cell? = nil, _ visit: (RecordID, [Cell]) throws -> Void
    ) throws -> [Cell]? {
        let keys = shape.key.map(\.sql)
        let rows = Span(keys, alias: "t", start: start, end: through.map { [$0] })
        let shadows = ShadowTable(shape)
        let isUnedited = shadows.noneSQL(where: keys.map { "s.\($0) = +t.\($0)" }.joined(separator: " AND "))
        var last: [Cell]?
        var count = 0
        try read(
            db,
            """
            SELECT \(list("t")) FROM \(shape.sql) AS t
            WHERE \(rows.condition) AND \(shape.isInSQL(scope, "t")) AND \(isUnedited)
            AND \(FirstCapture.isDoneSQL(shape, "t"))
            ORDER BY \(keys.map { "t.\($0)" }.joined(separator: ", ")) LIMIT \(Self.stepRows)
            """, rows.cells
        ) { key, cells in
            (last, count) = (key, count + 1)
            // A key that cannot travel is on this device only.
            if let id = shape.recordID(key) { try visit(id, cells) }
        }
        let isAtEnd = count < Self.stepRows
        let edited = Span(keys, alias: "t", start: start, end: isAtEnd ? through.map { [$0] } : last)
        try read(
            db,
            shadows.servedSQL(
                list("t"), where: edited.condition, and: FirstCapture.isDoneSQL(shape, "t"), in: scope), edited.cells
        ) { key, cells in
            if let id = shape.recordID(key) { try visit(id, cells) }
        }
        if isAtEnd { try visitQuarantined(db, visit) }
        return isAtEnd ? nil : last
    }

    /// Visits the rows that the scope holds and the table does not. An edited one is visited by its shadow instead.
    private func visitQuarantined(_ db: Database, _ visit: (RecordID, [Cell]) throws -> Void) throws {
        let table = RecordTable(shape)
        for record in try QuarantinedRow.records(db, shape.name, scope) {
            guard let id = RecordID(record), let key = shape.key(of: id),
                let cells = try QuarantinedRow.entry(db, shape, id, scope.name)?.cells
            else { continue }
            if let shadow = try table.shadow(db, key) {
                guard try table.isServersRow(db, key, shadow, quarantinedIn: scope.name) else { continue }
            } else if let row = try table.row(db, key), shape.scope(ofKey: key, row) == scope {
                continue
            }
            try visit(id, cells)
        }
    }

    private func list(_ alias: String) -> String {
        shape.columns.map { "\(alias).\($0.sql)" }.joined(separator: ", ")
    }

    private func read(
        _ db: Database, _ sql: String, _ arguments: [Cell], _ visit: ([Cell], [Cell]) throws -> Void
    ) throws {
        let query = try Query(db, sql)
        query.bind(arguments)
        defer { query.clear() }
        while try query.step(db) {
            try visit(query.cells(0..<shape.key.count), query.cells(shape.key.count..<shape.columns.count))
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
