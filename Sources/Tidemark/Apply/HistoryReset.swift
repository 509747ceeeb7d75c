import GRDB
import TidemarkCore
import TidemarkWire

/// Forgets what is known of versions that the server has lost.
struct HistoryReset {
    let db: Database
    let schema: SyncSchema

    /// Forgets the versions after `survived`: they belong to a history that is no more.
    func forget(_ record: inout ScopeRecord, after survived: Version) throws {
        record.complete = survived > 0 ? record.complete.map { min($0, survived) } : nil
        record.origin = survived > 0 ? record.origin.map { min($0, survived) } : nil
        record.head = nil
        record.isScanning = false
        let scope = record.scope
        try KnownVersions.drop(db, scope, after: survived)
        try QuarantinedRow.forgetVersions(db, scope, after: survived)
        for shape in schema.shapes(in: scope) { try forget(shape, scope, after: survived) }
        // The bytes of attachments may be lost with the records, or without them.
        try Blob.doubt(db, scope, now: wallClockMilliseconds())
    }

    private func forget(_ shape: TableSchema, _ scope: Scope, after survived: Version) throws {
        let table = RecordTable(shape)
        for key in try ShadowTable(shape).keys(db, after: survived) {
            guard var shadow = try table.shadow(db, key), shadow.scope == nil || shadow.scope == scope.name
            else { continue }
            // The row itself may be of the lost part: whatever the snapshot has is newer than nothing.
            if let version = shadow.version, version > survived { shadow.version = nil }
            shadow.bases = shadow.bases.mapValues { min($0, survived) }
            try table.writeShadow(db, key, shadow)
        }
    }
}
