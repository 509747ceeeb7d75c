import GRDB
import TidemarkWire

/// Notes which records a block of edits touched, and makes one group of them.
struct Grouping {
    let db: Database
    let schema: SyncSchema
    let watch: ShadowWatch

    func run<Result>(_ updates: (Database) throws -> Result) throws -> Result {
        let (result, touched) = try watch.rows(db, touchedBy: updates)
        try group(touched)
        return result
    }

    private func group(_ touched: [String: Set<Int64>]) throws {
        let group = randomHex(bytes: 8)
        let tables = schema.shapes.map(RecordTable.init)
        var earlier: Set<String> = []
        for table in tables {
            let shadows = ShadowTable(table.shape)
            for row in touched[shadows.name] ?? [] {
                if let known = try shadows.group(db, row: row) { earlier.insert(known) }
                try shadows.setGroup(db, row: row, group)
            }
        }
        for earlier in earlier { try schema.rename(db, group: earlier, to: group) }
        try check(group, tables)
    }

    private func check(_ group: String, _ tables: [RecordTable]) throws {
        var scopes: Set<Scope> = []
        var count = 0
        for table in tables {
            let keys = try ShadowTable(table.shape).keys(db, of: group)
            count += keys.count
            for key in keys {
                let cells = try table.row(db, key) ?? table.shadow(db, key)?.cells ?? []
                if let scope = table.shape.scope(ofKey: key, cells) { scopes.insert(scope) }
            }
        }
        guard scopes.count <= 1 else {
            throw SyncError(
                .groupImpossible, "The edits of a group lie in \(scopes.count) scopes.",
                hint: "Make one group per scope: scopes are sent apart from each other.")
        }
        guard count <= Outbox.groupLimit else {
            throw SyncError(
                .groupImpossible,
                "The group would have \(count) edited records; \(Outbox.groupLimit) go into one request.",
                hint: "Make smaller groups, or sync before this one: unsent groups that share a record are one.")
        }
    }
}

/// Hears which shadows capture wrote, whatever statement, trigger or cascade was the cause. It stays with its
/// connection and hears nothing between groups: with each observer that comes or goes, GRDB forgets all statements that
/// delete.
///
/// Unchecked because it is used on the writer's queue only.
final class ShadowWatch: TransactionObserver, @unchecked Sendable {
    private var isThere = false
    private var isListening = false
    private var rows: [String: Set<Int64>] = [:]

    /// Runs in a transaction of the writer.
    func rows<Result>(
        _ db: Database, touchedBy updates: (Database) throws -> Result
    ) throws -> (Result, [String: Set<Int64>]) {
        if !isThere { db.add(transactionObserver: self, extent: .observerLifetime) }
        (isThere, isListening, rows) = (true, true, [:])
        defer { (isListening, rows) = (false, [:]) }
        return (try updates(db), rows)
    }

    func observes(eventsOfKind kind: DatabaseEventKind) -> Bool {
        isListening && ShadowTable.isOne(kind.tableName)
    }

    func databaseDidChange(with event: DatabaseEvent) { rows[event.tableName, default: []].insert(event.rowID) }

    func databaseDidCommit(_ db: Database) {}
    func databaseDidRollback(_ db: Database) {}
}
