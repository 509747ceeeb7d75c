import GRDB
import TidemarkWire

/// The records whose server rows a transaction may have changed. They are looked at, and the manifest written, once at
/// its end: whatever happened to a record in between, its entry says how it stands then.
struct ManifestChanges {
    private struct Touch {
        let key: [UInt8]
        /// The row's hash, where it is known, mostly from the page's own bytes; else the file is read.
        let hash: UInt64?
    }

    private struct Table {
        let entity: String
        var touches: [Touch] = []
    }

    private var tables: [Table] = []

    var isEmpty: Bool { tables.isEmpty }

    mutating func look(_ entity: String, _ id: RecordID) { look(entity, PackedID.encode(id)) }

    mutating func look(_ entity: String, _ key: [UInt8]) { append(Touch(key: key, hash: nil), to: entity) }

    /// The record's row went from the page into the table as it was.
    mutating func note(_ entity: String, _ key: [UInt8], hash: UInt64) {
        append(Touch(key: key, hash: hash), to: entity)
    }

    private mutating func append(_ touch: Touch, to entity: String) {
        // A page tells of one table after the other.
        let place = tables.lastIndex { $0.entity == entity } ?? tables.endIndex
        if place == tables.endIndex { tables.append(Table(entity: entity)) }
        tables[place].touches.append(touch)
    }

    mutating func write(_ db: Database, _ schema: SyncSchema, _ scope: Scope) throws {
        for table in tables {
            guard let shape = schema[table.entity] else { continue }
            try Manifest(db: db, scope: scope, entity: table.entity)
                .update(with: Self.changes(table.touches, db, shape, scope))
        }
        tables = []
    }

    /// Each record once. One that was touched twice is read, whatever the page said.
    private static func changes(
        _ touches: [Touch], _ db: Database, _ shape: TableSchema, _ scope: Scope
    ) throws -> [ManifestChange] {
        let (hasher, records) = (RowHash(shape), RecordTable(shape))
        let sorted = touches.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        var changes: [ManifestChange] = []
        changes.reserveCapacity(sorted.count)
        var next = 0
        while next < sorted.count {
            let touch = sorted[next]
            let start = next
            while next < sorted.count, sorted[next].key == touch.key { next += 1 }
            if let hash = touch.hash, next == start + 1 {
                changes.append(ManifestChange(key: touch.key, hash: hash))
            } else {
                let cells = try PackedID.decode(touch.key[...]).flatMap { try records.serverRow(db, $0, in: scope) }
                changes.append(ManifestChange(key: touch.key, hash: cells.map { hasher.hash(touch.key, $0) }))
            }
        }
        return changes
    }
}

extension RecordTable {
    /// A record as the server has it in a scope, as far as this device knows: beneath edits the shadow, else the row in
    /// the table or outside of it. `nil` where the server has none. ``ServerRows`` reads all of them by the same rule.
    func serverRow(_ db: Database, _ id: RecordID, in scope: Scope) throws -> [Cell]? {
        guard let key = shape.key(of: id) else { return nil }
        if let shadow = try shadow(db, key) {
            guard try isServersRow(db, key, shadow, quarantinedIn: scope.name) else {
                return shadow.isRowKnown ? shadow.cells : nil
            }
        } else if let row = try row(db, key), shape.scope(ofKey: key, row) == scope {
            return row
        }
        return try QuarantinedRow.entry(db, shape, id, scope.name)?.cells
    }

    /// Whether a row that a scope keeps outside the table is the server's, although the record was edited here: the
    /// edits are those of another scope's row, or the app has made the record anew. Else the shadow tells more of it;
    /// beneath an insert there is nothing of the server's.
    func isServersRow(_ db: Database, _ key: [Cell], _ shadow: Shadow, quarantinedIn scope: String) throws -> Bool {
        if shape.isScopedByColumn, shadow.scope ?? shadow.routingScope != scope { return true }
        return try shadow.state == .absent && (shadow.isGone || row(db, key) != nil)
    }
}
