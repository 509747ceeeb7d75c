import GRDB
import TidemarkWire

extension Applier {
    /// The server has taken an operation, and with it what its record names. Bytes that it got long before, while the
    /// operation waited, may be gone there by now.
    func noteAttachments(_ verdict: Verdict, _ entry: OutboxEntry) throws {
        guard verdict.tookEffect, let shape = tables[entry.entity]?.shape, !shape.attachments.isEmpty else { return }
        for fields in [try entry.operation().fields, verdict.record?.data].compactMap({ $0 }) {
            for column in shape.attachments {
                guard case .text(let text)? = fields.value(column.name), let reference = BlobReference(text) else {
                    continue
                }
                try Blob.recordTaken(db, naming: reference, in: scope, now: now)
            }
        }
    }
}
