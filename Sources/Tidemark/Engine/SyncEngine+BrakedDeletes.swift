import GRDB
import TidemarkWire

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
