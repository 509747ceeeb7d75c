import GRDB
import TidemarkWire

extension Manifest {
    /// Makes a table's manifest anew from what stands in the file: after its columns changed under capture, and in
    /// files that are older than the manifest.
    static func rebuild(_ db: Database, _ shape: TableShape) throws {
        let hasher = RowHash(shape)
        // A row that no trigger saw come is not the server's, although it has no shadow.
        let unseen = Set(
            try Query(db, "SELECT record FROM tidemark_inferred WHERE entity = ?1 AND compared = 0 AND kind = ?2")
                .rows(db, [.text(shape.name), .integer(Inferred.Kind.insert.rawValue)]) { $0.text(0) })
        for scope in try Backfills.begun(db) where shape.rule.mayHold(scope) {
            let manifest = Manifest(db: db, scope: scope, entity: shape.name)
            try manifest.clear()
            var last: [Cell]?
            repeat {
                var changes: [[UInt8]: UInt64?] = [:]
                last = try ServerRows(shape: shape, scope: scope).step(db, from: last) { id, cells in
                    guard !unseen.contains(id.text) else { return }
                    let key = ManifestKey.encode(id)
                    changes[key] = .some(hasher.hash(key, cells))
                }
                try manifest.take(changes)
            } while last != nil
        }
    }
}
