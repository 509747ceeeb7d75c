import GRDB
import TidemarkWire

extension Applier {
    /// Passes over a change of a table that this engine does not name. Another engine on this file may: it fetches what
    /// it will never be told again, and that is noted in the transaction that moves the scope on.
    func passOver(_ change: IncomingChange, _ reader: JSONReader) throws {
        let name = reader.string(change.entity)
        guard passedOver.insert(SQLName(name)).inserted, schema[name] == nil,
            let entity = try ShadowTable.spelling(db, of: name)
        else { return }
        try Backfills.enqueue(db, entity: entity, fields: nil, scope)
    }
}
