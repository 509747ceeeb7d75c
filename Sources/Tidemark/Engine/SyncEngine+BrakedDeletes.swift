import GRDB
import TidemarkWire

extension SyncEngine {
    /// Deletes that the server refused, since there were more of them than the operator lets pass without a word; their
    /// rows are back in the table.
    ///
    /// - Throws: ``SyncError`` `database_failed` where the file cannot be read.
    public func brakedDeletes() async throws -> [RejectedOperation] {
        try await rejectedOperations().filter { $0.code == RejectionCode.deleteBrake && $0.isDelete }
    }

    /// Makes these deletes anew: they were meant, and the server takes them now.
    ///
    /// - Parameter table: `nil`: of all tables.
    /// - Throws: as ``SyncEngine/retry(_:changing:)`` does, at the first delete that it is thrown for; those before it
    ///   are confirmed.
    public func confirmBrakedDeletes(in table: String? = nil) async throws {
        for refused in try await brakedDeletes() where table == nil || refused.entity == table {
            try await file.asked(to: .write) { db in
                try Confirmed.note(db, RecordName(entity: refused.entity, record: refused.record))
            }
            try await retry(refused)
        }
    }
}
