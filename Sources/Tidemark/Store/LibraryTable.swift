import GRDB
import TidemarkWire

/// A table of the library's own in the app's file, and what becomes of its rows where a record, a table or a scope
/// changes its name or leaves the device. Such a change goes through ``all``, so that a new table is listed once; where
/// more is to be done than to rename or delete rows, the table's own type does it, and the table names no such event.
struct LibraryTable: Hashable, Sendable {
    /// The columns by which a row names what it is about.
    struct Columns: OptionSet, Hashable, Sendable {
        let rawValue: Int

        /// A scope's name, in a column `scope`.
        static let scope = Columns(rawValue: 1)
        /// An app's table, in a column `entity`.
        static let entity = Columns(rawValue: 2)
        /// A record's id, in a column `record`.
        static let record = Columns(rawValue: 4)
        /// A record that stands in the way, in columns `blocker_entity` and `blocker_record`.
        static let blocker = Columns(rawValue: 8)
    }

    /// The events that a table's rows follow. Rows stay where a table does not name the event.
    struct Events: OptionSet, Hashable, Sendable {
        let rawValue: Int

        /// A record has got another id: its rows get it too.
        static let rename = Events(rawValue: 1)
        /// A scope leaves the device: its rows go.
        static let scopeRemoval = Events(rawValue: 2)
        /// A table is spread over scopes by another rule: its rows in the scopes of the old one go.
        static let ruleChange = Events(rawValue: 4)
        /// A table is not synced any more: its rows go.
        static let tableRemoval = Events(rawValue: 8)
        /// A synced table is in the file no more: its rows go.
        static let tableLoss = Events(rawValue: 16)
    }

    /// Without the prefix `tidemark_`.
    let name: String
    let columns: Columns
    let events: Events

    var sql: String { "tidemark_\(name)" }

    private init(_ name: String, _ columns: Columns, _ events: Events = []) {
        (self.name, self.columns, self.events) = (name, columns, events)
    }

    /// Every table that names scopes, entities or records in columns of these names.
    static let all: [LibraryTable] = [
        // These say what is known of the server's rows.
        .init("known_version", [.scope, .entity, .record], [.rename, .scopeRemoval, .ruleChange]),
        .init("refetch", [.scope, .entity, .record], [.rename, .scopeRemoval, .ruleChange]),
        .init("cascade", [.scope, .entity, .record], [.rename, .scopeRemoval, .ruleChange]),
        // The rule's change looks at each quarantined row itself.
        .init("quarantine", [.scope, .entity, .record], [.rename, .scopeRemoval]),
        // Deleted rows stay where the scope still may hold them (RuleChange); their ids are the server's already.
        .init("deleted_row", [.scope, .entity, .record], [.scopeRemoval]),
        .init("manifest", [.scope, .entity], [.scopeRemoval, .ruleChange, .tableRemoval]),
        .init("manifested", [.scope, .entity], [.scopeRemoval, .ruleChange, .tableRemoval]),
        .init("inferred", [.scope, .entity, .record], [.scopeRemoval, .ruleChange, .tableRemoval, .tableLoss]),
        .init("first_capture", [.scope, .entity], [.scopeRemoval, .ruleChange, .tableRemoval, .tableLoss]),
        .init("sealed_run", [.scope, .entity], [.scopeRemoval, .ruleChange, .tableRemoval, .tableLoss]),
        .init("confirmed", [.entity, .record]),
        .init("bootstrap", [.scope, .entity], [.scopeRemoval]),
        .init("staged", [.scope], [.scopeRemoval]),
        .init("backfill", [.scope, .entity], [.scopeRemoval]),
        .init("backfill_seen", [.scope, .entity, .record], [.scopeRemoval]),
        // These are on their way up. Of operations, the app decides about those that were refused (ScopeRemoval).
        .init("lane", [.scope], [.scopeRemoval]),
        .init("operation", [.scope, .entity, .record], [.rename]),
        .init("history", [.scope], [.scopeRemoval]),
        .init("blocked", [.entity, .record, .blocker], [.rename, .tableRemoval, .tableLoss]),
        .init("ref", [.entity]),
        .init("alias", [.entity, .record]),
        // Bytes that rows name. What is noted of them is looked at when the rows are gone.
        .init("blob", [.scope], [.scopeRemoval]),
        .init("blob_change", [.scope]),
        // The app decides about these.
        .init("conflict", [.scope, .entity, .record], [.rename]),
        .init("orphan", [.scope, .entity, .record], [.rename]),
    ]

    static func following(_ event: Events) -> [LibraryTable] { all.filter { $0.events.contains(event) } }
}

extension LibraryTable {
    /// Gives the rows of one record its new id. What is noted of that id already is newer, and stays.
    func rename(_ db: Database, entity: String, _ old: RecordID, to new: RecordID) throws {
        let record: [Cell] = [.text(entity), .text(old.text)]
        try change(
            db, "UPDATE OR IGNORE \(sql) SET record = ?3 WHERE entity = ?1 AND record = ?2", record + [.text(new.text)])
        try change(db, "DELETE FROM \(sql) WHERE entity = ?1 AND record = ?2", record)
        guard columns.contains(.blocker) else { return }
        try change(
            db,
            """
            UPDATE \(sql) SET blocker_record = ?3
            WHERE blocker_entity = ?1 AND blocker_record = ?2 AND \(BlockedEdits.isRefused)
            """, record + [.text(new.text)])
    }

    /// Gives the rows of one of the app's tables its new spelling.
    func respell(_ db: Database, entity old: String, as new: String) throws {
        let names: [Cell] = [.text(old), .text(new)]
        try change(db, "UPDATE OR REPLACE \(sql) SET entity = ?2 WHERE entity = ?1", names)
        guard columns.contains(.blocker) else { return }
        try change(db, "UPDATE \(sql) SET blocker_entity = ?2 WHERE blocker_entity = ?1", names)
    }

    func clear(_ db: Database, scope: Scope) throws {
        try change(db, "DELETE FROM \(sql) WHERE scope = ?1", [.text(scope.name)])
    }

    func clear(_ db: Database, scope: Scope, entity: String) throws {
        try change(db, "DELETE FROM \(sql) WHERE scope = ?1 AND entity = ?2", [.text(scope.name), .text(entity)])
    }

    func clear(_ db: Database, entity: String) throws {
        try change(db, "DELETE FROM \(sql) WHERE entity = ?1", [.text(entity)])
    }

    /// SQLite tells the app's observations nothing of tables WITHOUT ROWID.
    private func change(_ db: Database, _ statement: String, _ cells: [Cell]) throws {
        try Query(db, statement).execute(cells)
        if db.changesCount > 0 { try db.notifyChanges(in: Table(sql)) }
    }
}
