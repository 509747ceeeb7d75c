import GRDB
import TidemarkWire

extension TableRules {
    /// The tables that may hold rows of a scope, with those that an earlier version of the app synced.
    static func shapes(_ db: Database, in scope: Scope, beside schema: SyncSchema) throws -> [TableSchema] {
        var shapes = schema.shapes(in: scope)
        for (name, rule) in try all(db).sorted(by: { $0.key < $1.key })
        where schema[name] == nil && rule.mayHaveRows(in: scope) {
            // A rule whose table has lost the rule's column, or its key, says nothing any more.
            guard try FileTable.exists(name, db), try ShadowTable.exists(db, of: name),
                let shape = try TableSchema.supported(db, table: name, rule: rule)
            else { continue }
            // A migration may have changed the table while no engine named it.
            try Installation.widenShadow(db, shape)
            shapes.append(shape)
        }
        return shapes
    }
}
