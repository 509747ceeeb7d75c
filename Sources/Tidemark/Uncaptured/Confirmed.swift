import GRDB
import TidemarkWire

/// Deletes that the server's brake refused and that somebody confirmed: they are sent anew, and say so.
enum Confirmed {
    static func note(_ db: Database, _ name: RecordName) throws {
        try Query(db, "INSERT INTO tidemark_confirmed(entity, record) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
            .execute([.text(name.entity), .text(name.record)])
    }

    static func take(_ db: Database, _ name: RecordName) throws -> Bool {
        try Query(db, "DELETE FROM tidemark_confirmed WHERE entity = ?1 AND record = ?2")
            .execute([.text(name.entity), .text(name.record)])
        return db.changesCount > 0
    }
}

extension SyncEngine {
    /// Deletes that the server refused, since there were more of them than the operator lets pass without a word; their
    /// rows are back in the table.
    public func brakedDeletes() async throws -> [RejectedOperation] {
        try await rejectedOperations().filter { $0.code == RejectionCode.deleteBrake && $0.isDelete }
    }

    /// Makes these deletes anew: they were meant, and the server takes them now.
    ///
    /// - Parameter table: `nil`: of all tables.
    public func confirmBrakedDeletes(in table: String? = nil) async throws {
        for refused in try await brakedDeletes() where table == nil || refused.entity == table {
            try await file.asked(to: .write) { db in
                try Confirmed.note(db, RecordName(entity: refused.entity, record: refused.record))
            }
            try await retry(refused)
        }
    }
}
