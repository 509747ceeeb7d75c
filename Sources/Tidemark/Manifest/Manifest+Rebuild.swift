import GRDB
import TidemarkWire

extension Manifest {
    /// Makes a table's manifest anew from what stands in the file: after its columns changed under capture, and in
    /// files that are older than the manifest.
    static func rebuild(_ db: Database, _ shape: TableSchema) throws {
        let hasher = RowHash(shape)
        for scope in try ScopeRecord.begun(db) where shape.rule.mayHaveRows(in: scope) {
            let manifest = Manifest(db: db, scope: scope, entity: shape.name)
            let unseen = try manifest.unseen()
            try manifest.clear()
            try manifest.update(with: unseen.filter { $0.value != nil } as [[UInt8]: UInt64?])
            var last: [Cell]?
            repeat {
                var changes: [[UInt8]: UInt64?] = [:]
                last = try ServerRows(shape: shape, scope: scope).step(db, from: last) { id, cells in
                    let key = PackedID.encode(id)
                    if unseen[key] == nil { changes[key] = .some(hasher.hash(key, cells)) }
                }
                try manifest.update(with: changes)
            } while last != nil
        }
    }

    /// Returns the hashes of records that were written while no trigger stood, until the server is asked about them:
    /// their rows here are not the server's, although they may have no shadow. `nil` of one that the server does not
    /// have.
    private func unseen() throws -> [[UInt8]: UInt64?] {
        var unseen: [[UInt8]: UInt64?] = [:]
        for id in try Inferred.uncompared(db, scope, entity).compactMap({ RecordID($0) }) {
            try unseen.updateValue(hash(of: id), forKey: PackedID.encode(id))
        }
        return unseen
    }
}
