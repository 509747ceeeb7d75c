import GRDB
import TidemarkWire

/// Rows of the first capture that lie between two keys and were sealed one behind the other. Until their verdicts the
/// server lacks them, as it lacks those that are not sealed (``FirstCapture``), and none has a shadow that says so. If
/// it takes all of them as they were sent, and none was edited since, no shadow is ever written. Before anything else
/// happens to one of them, ``unfold(_:_:)`` gives each its shadow.
struct SealedRun {
    private let operations: ClosedRange<Int64>
    private let ends: [Cell]

    /// Adds a run. Returns its number.
    static func add(
        _ db: Database, _ entity: String, in scope: Scope, _ ends: (first: Cell, last: Cell),
        operations: ClosedRange<Int64>
    ) throws -> Int64 {
        try Query(
            db,
            """
            INSERT INTO tidemark_sealed_run(first_operation, last_operation, scope, entity, first, last)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            """
        ).execute([
            .integer(operations.lowerBound), .integer(operations.upperBound), .text(scope.name), .text(entity),
            ends.first, ends.last,
        ])
        return operations.lowerBound
    }

    static func isThere(_ db: Database) throws -> Bool { try FileTable.isListed("tidemark_sealed_run", db) }

    static func isAny(_ db: Database) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_sealed_run LIMIT 1").first(db) { _ in true } ?? false
    }

    private static func all(_ db: Database, _ entity: String, number: Int64? = nil) throws -> [SealedRun] {
        try Query(
            db,
            """
            SELECT first_operation, last_operation, first, last FROM tidemark_sealed_run
            WHERE entity = ?1 AND first_operation = coalesce(?2, first_operation) ORDER BY first_operation
            """
        ).rows(db, [.text(entity), .optional(number)]) {
            SealedRun(operations: $0.integer(0)...$0.integer(1), ends: $0.cells(2..<4))
        }
    }

    /// Drops a run of which the server took so many rows as they were sent. Returns whether these are all, and no row
    /// between its ends was edited or made since.
    static func drop(_ db: Database, _ shape: TableSchema, _ number: Int64, taken: Int) throws -> Bool {
        guard let run = try all(db, shape.name, number: number).first, run.operations.count == taken,
            try !ShadowTable(shape).isAny(db, between: run.ends)
        else { return false }
        try Query(db, "DELETE FROM tidemark_sealed_run WHERE first_operation = ?1").execute([.integer(number)])
        return true
    }

    /// Gives the rows of all runs their shadows.
    static func unfold(_ db: Database, _ schema: SyncSchema) throws {
        guard try isAny(db) else { return }
        for shape in schema.shapes { try unfold(db, shape) }
        // Tables that only another opening of the file has named.
        let others = try Query(db, "SELECT DISTINCT scope FROM tidemark_sealed_run").rows(db) { Scope($0.text(0)) }
        for scope in others.compactMap(\.self) {
            for shape in try TableRules.shapes(db, in: scope, beside: schema) { try unfold(db, shape) }
        }
    }

    /// Gives the rows of a table's runs the shadows of sealed rows, as their operations have them: what stands in the
    /// table may have been written while nothing was captured.
    static func unfold(_ db: Database, _ shape: TableSchema) throws {
        let table = RecordTable(shape)
        for run in try all(db, shape.name) {
            try ShadowTable(shape).becomeSeeds(db, between: run.ends)
            for entry in try Outbox.open(db, ids: run.operations) {
                var seed = Shadow(state: .absent, cells: [], bases: [Shadow.seedBase: 0], edited: Shadow.seedStamp)
                guard let id = RecordID(entry.record), let key = shape.key(of: id), try table.shadow(db, key) == nil,
                    let cells = seed.overlaid(with: try entry.sealedOperation(), shape: shape)
                else { continue }
                seed.cells = cells
                try table.writeShadow(db, key, seed)
            }
        }
        try Query(db, "DELETE FROM tidemark_sealed_run WHERE entity = ?1").execute([.text(shape.name)])
    }

    /// How many rows of the runs were not edited or deleted since, and how many were, as their shadows tell.
    static func left(_ db: Database, _ shape: TableSchema) throws -> (untouched: Int, touched: Int) {
        // A file of an older version may be read before it is brought up to date.
        guard try isThere(db) else { return (0, 0) }
        return try all(db, shape.name).reduce(into: (0, 0)) { sum, run in
            let touched = try ShadowTable(shape).countTouched(db, between: run.ends)
            sum.0 += max(0, run.operations.count - touched)
            sum.1 += touched
        }
    }

    /// SQL: the first key of a table's runs.
    static func firstKeySQL(_ entity: String) -> String {
        "(SELECT first FROM tidemark_sealed_run WHERE entity = \(literal(entity)) ORDER BY first_operation LIMIT 1)"
    }
}
