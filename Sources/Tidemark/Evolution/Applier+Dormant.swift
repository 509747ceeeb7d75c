import GRDB
import TidemarkWire

extension Applier {
    /// Passes over a change of a table that this engine does not name. Where another engine on this file does, it has to
    /// fetch what it will never be told again; noted in the transaction that moves the scope on.
    func passOver(_ change: IncomingChange, _ reader: JSONReader) throws {
        let name = reader.string(change.entity)
        guard passedOver.insert(name).inserted, layout[name] == nil,
            try db.tableExists(TableShape.shadowPrefix + name)
        else { return }
        try Backfills.note(db, entity: name, fields: nil, scope)
    }
}
