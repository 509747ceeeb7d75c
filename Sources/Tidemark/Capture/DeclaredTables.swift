import Foundation
package import GRDB
import TidemarkCore
package import TidemarkWire

/// The app's declaration of its tables, as the file keeps it. A tool that opens the file without the app goes by it, so
/// that it changes neither which tables are synced nor in which scopes.
extension SyncedTable {
    /// The tables that engines have synced in a file, as they were last declared.
    package static func declared(in db: Database) throws -> [SyncedTable] {
        let notes = try Note.all(db)
        return try TableRules.all(db).sorted { $0.key < $1.key }.map { name, rule in
            let note = notes[name]
            return SyncedTable(
                name: name, scope: rule.ofScope, keepsDeleted: note?.keepsDeleted.map { .milliseconds($0) },
                ids: note?.ids.flatMap(EntityDeclaration.IDSource.init), subscope: rule.subscope,
                references: note?.documents ?? [], attachments: note?.attached ?? [])
        }
    }

    /// Whether no app, but at most the command line, has ever synced this file: then no app's declaration stands in it.
    package static func isOurs(_ db: Database) throws -> Bool {
        try !LibrarySchema.isInstalled(db) || Meta.get(db, commandKey) == "1"
    }

    /// Called when the command line has installed an engine in a file that was its own before.
    package static func noteCommand(_ db: Database) throws { try Meta.set(db, commandKey, "1") }

    /// Called for an app's engine: the file is the command line's no more.
    static func noteInstall(_ db: Database) throws {
        if try Meta.get(db, commandKey) == "1" { try Meta.set(db, commandKey, "0") }
    }

    /// Notes that the warnings were said, and returns whether they are others than last time.
    package static func noteWarnings(_ warnings: [String], in db: Database) throws -> Bool {
        guard try Meta.get(db, warnedKey).map({ NameList($0).list }) ?? [] != warnings else { return false }
        try Meta.set(db, warnedKey, NameList(warnings).text)
        return true
    }

    private static let warnedKey = "warned"
    private static let commandKey = "set_up_by_command"

    /// Removes scopes that never synced, such as one whose name was mistyped and never granted: it is as if their
    /// tables had never been synced, and all their rows are sent to the scope into which they are synced next. Scopes
    /// that this file held, has had a verdict from or keeps edits of stay as they are.
    package static func release(_ db: Database, beside scope: Scope) throws {
        guard try LibrarySchema.isInstalled(db) else { return }
        let unsynced = try ScopeRecord.unsynced(db, beside: scope).filter { $0.parent != scope }
        let rules = try TableRules.all(db)
        for scope in try unsynced.filter({ try !Outbox.hasFinished(db, $0) }) {
            for table in rules.filter({ $0.value == .constant(scope) }).keys { try forget(db, table) }
            for place in LibraryTable.following(.scopeRemoval) { try place.clear(db, scope: scope) }
            try Outbox.clearAll(db, scope)
            try ScopeRecord.remove(db, scope)
        }
        try Outbox.dropReferences(db)
    }

    /// Takes capture off a table, and all that it noted.
    private static func forget(_ db: Database, _ table: String) throws {
        let triggers = try Query(
            db,
            """
            SELECT name FROM sqlite_master
            WHERE type = 'trigger' AND tbl_name = ?1 AND name LIKE 'tidemark\\_%' ESCAPE '\\'
            """
        ).rows(db, [.text(table)]) { $0.text(0) }
        for trigger in triggers { try db.execute(sql: "DROP TRIGGER \(quoted(trigger))") }
        try RecordStateView.drop(db, table: table)
        try ShadowTable.drop(db, of: table)
        for place in LibraryTable.following(.tableRemoval) { try place.clear(db, entity: table) }
        try TableRules.remove(db, table)
    }

    /// Keeps what a rule does not say.
    static func writeNotes(_ db: Database, _ tables: [SyncedTable]) throws {
        var notes = try Note.all(db)
        for table in tables { notes[table.name] = Note(table) }
        try Note.write(db, notes)
    }
}

/// The file's note of a table beside its rule.
private struct Note: Codable, Hashable {
    /// In milliseconds.
    var keepsDeleted: Int64?
    /// The maker of its ids, where the app has said so.
    var ids: String?
    /// Column, path and table of each place in its documents.
    var references: [[String]]
    /// Column and download of each attachment; `nil` in the note of a version that knew none.
    var attachments: [[String]]?

    private static let key = "tables"

    init?(_ table: SyncedTable) {
        keepsDeleted = table.keepsDeleted?.milliseconds
        ids = table.ids?.rawValue
        references = table.references.map { [$0.column, $0.path, $0.table] }
        attachments = table.attachments.isEmpty ? nil : table.attachments.map { [$0.column, $0.download.rawValue] }
        if keepsDeleted == nil, ids == nil, references.isEmpty, attachments == nil { return nil }
    }

    var attached: [SyncedTable.Attachment] {
        (attachments ?? []).compactMap { $0.count == 2 ? .init(column: $0[0], noted: $0[1]) : nil }
    }

    var documents: [SyncedTable.DocumentID] {
        references.compactMap { $0.count == 3 ? .json($0[0], path: $0[1], to: $0[2]) : nil }
    }

    static func all(_ db: Database) throws -> [String: Note] {
        guard try LibrarySchema.isInstalled(db), let text = try Meta.get(db, key) else { return [:] }
        // A note that cannot be read counts as none: the app declares its tables again.
        return (try? JSONDecoder().decode([String: Note].self, from: Data(text.utf8))) ?? [:]
    }

    static func write(_ db: Database, _ notes: [String: Note]) throws {
        guard notes != (try all(db)) else { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try Meta.set(db, key, String(decoding: try encoder.encode(notes), as: UTF8.self))
    }
}
