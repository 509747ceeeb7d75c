import GRDB
import TidemarkWire

extension Applier {
    /// Keeps the last row of a record that the server says is gone, where the table asks for that. A row that was
    /// deleted on this device too is not kept.
    func keepDeleted(_ table: ApplyTable, _ id: RecordID, _ known: [Cell]? = nil) throws {
        guard table.shape.keepsDeleted != nil, let key = known ?? table.shape.key(of: id),
            let row = try table.records.row(db, key)
        else { return }
        let shadow = try table.records.shadow(db, key)
        // A row that the server never had is an edit of this device, and is kept as such.
        if let shadow, shadow.state == .absent { return }
        try DeletedRowCache.keep(
            db, table.shape, record: id, scope: scope, cells: shadow?.cells ?? row, now: now)
    }
}
