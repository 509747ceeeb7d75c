package import Foundation
import GRDB
package import TidemarkServer

// The content of the file, for tests of what the engine has written.
extension SQLiteStore {
    /// The state of a scope apart from its rows; all zero for a scope that nobody wrote to.
    package func state(of scope: Scope) throws -> ScopeState {
        try pool.read { db in try SQLiteScope(db, scope).state }
    }

    /// The rows of a scope above a version that are kept, superseded ones too, in version order.
    package func log(of scope: Scope, after version: Version) throws -> [LogEntry] {
        try pool.read { db in
            guard let id = try SQLiteScope(db, scope).id else { return [] }
            let statement = try db.cachedStatement(
                sql: """
                    SELECT version, entity, record, kind, payload, time, superseded_by FROM change
                    WHERE scope = ? AND version > ? ORDER BY version
                    """)
            return try Row.fetchAll(statement, arguments: [id, version]).map { row in
                LogEntry(
                    version: row[0], entity: row[1], record: row[2], kind: RowKind(rawValue: row[3]) ?? .upsert,
                    payload: (row[4] as Data?).map { [UInt8]($0) }, time: row[5], supersededBy: row[6])
            }
        }
    }

    /// Writes a copy of the store into a new file, as an operator's backup does; it may be written to meanwhile.
    package func copy(to path: URL) throws {
        let copy = try DatabaseQueue(path: path.path)
        try pool.backup(to: copy)
        try copy.close()
    }
}
