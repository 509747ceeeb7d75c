import GRDB
import TidemarkWire

extension RowCounting {
    func rows() throws -> SyncStatus.Rows {
        if try Installation.isCaptured(db, shape), try Installation.hasKey(db, shape) { return try noted() }
        // Nothing is compared yet: the next installation looks at each row, as this does at their number.
        var rows = SyncStatus.Rows()
        rows.outgoing = try counted()
        return rows
    }
}
