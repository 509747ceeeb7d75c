import GRDB
import TidemarkWire

/// The records whose server rows a transaction may have changed. They are looked at, and the manifest written, once at
/// its end: whatever happened to a record in between, its entry says how it stands then.
struct ManifestChanges {
    private enum Touch {
        /// The row's hash is known already, from the page's own bytes.
        case hash(UInt64)
        /// The file tells.
        case look
    }

    private var touched: [String: [[UInt8]: Touch]] = [:]

    var isEmpty: Bool { touched.isEmpty }

    mutating func look(_ entity: String, _ id: RecordID) { look(entity, ManifestKey.encode(id)) }

    mutating func look(_ entity: String, _ key: [UInt8]) { touched[entity, default: [:]][key] = .look }

    /// The record's row went from the page into the table as it was.
    mutating func note(_ entity: String, _ key: [UInt8], hash: UInt64) {
        touched[entity, default: [:]][key] = .hash(hash)
    }

    mutating func write(_ db: Database, _ layout: Layout, _ scope: Scope) throws {
        for (entity, records) in touched.sorted(by: { $0.key < $1.key }) {
            guard let shape = layout[entity] else { continue }
            let (hasher, table) = (RowHash(shape), RecordTable(shape))
            var changes: [[UInt8]: UInt64?] = [:]
            changes.reserveCapacity(records.count)
            for (key, touch) in records {
                switch touch {
                case .hash(let hash): changes[key] = .some(hash)
                case .look:
                    let cells = try ManifestKey.decode(key[...]).flatMap { try table.serverRow(db, $0, in: scope) }
                    changes[key] = .some(cells.map { hasher.hash(key, $0) })
                }
            }
            try Manifest(db: db, scope: scope, entity: entity).take(changes)
        }
        touched = [:]
    }
}

extension RecordTable {
    /// A record as the server has it in a scope, as far as this device knows: beneath edits the shadow, else the row in
    /// the table or outside of it. `nil` where the server has none. ``ServerRows`` reads all of them by the same rule.
    func serverRow(_ db: Database, _ id: RecordID, in scope: Scope) throws -> [Cell]? {
        guard let key = shape.key(of: id) else { return nil }
        if let shadow = try shadow(db, key) {
            switch shadow.state {
            case _ where shape.isScopedByColumn && shadow.scope != scope.name: break
            case .known: return shadow.cells
            case .deleted: return nil
            // Made here anew, while the server's row of the same key is kept outside the table.
            case .absent: break
            }
        } else if let row = try row(db, key), shape.scope(ofKey: key, row) == scope {
            return row
        }
        return try Parked.entry(db, shape, id, scope.name)?.cells
    }
}
