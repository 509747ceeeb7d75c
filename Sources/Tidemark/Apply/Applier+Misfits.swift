import GRDB
import TidemarkWire

extension Applier {
    /// Takes in a page's change of a record whose id is none of the table's keys.
    ///
    /// - Throws: ``DifferenceMismatch`` where the change is partial and the rest of the record is not here.
    func takeMisfitOfPage(_ change: IncomingChange, _ table: ApplyTable, _ reader: JSONReader) throws {
        if change.isPartial, let id = RecordID(reader.string(change.id)),
            try QuarantinedRow.cells(db, table.shape, id, scope.name) == nil
        {
            throw DifferenceMismatch()
        }
        try takeMisfit(change, table, reader)
    }

    /// Takes in a change of a record whose id is none of the table's keys.
    func takeMisfit(_ change: IncomingChange, _ table: ApplyTable, _ reader: JSONReader) throws {
        guard let id = RecordID(reader.string(change.id)) else {
            outcome.skipped += 1
            return
        }
        switch change.kind {
        case .upsert:
            try Misfits.put(
                db, table.shape, id, scope: scope, version: change.version, try table.cells(change, reader))
            outcome.quarantined += 1
        case .delete, .absent: try QuarantinedRow.remove(db, table.shape.name, id.text, scope.name)
        case .idmap, .unknown: outcome.skipped += 1
        }
    }
}
