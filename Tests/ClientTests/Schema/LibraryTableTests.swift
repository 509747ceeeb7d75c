import GRDB
import Testing

@testable import Tidemark

@Suite("The registry of the library's own tables")
struct LibraryTableTests {
    /// Tables whose rows end with their transaction, or that an app's table has one of.
    private static func isListed(_ name: String) -> Bool {
        name.hasPrefix("tidemark_") && !name.hasPrefix("tidemark_shadow_") && name != "tidemark_table"
    }

    @Test("every table that names scopes, entities or records in a file is in it, with just those columns")
    func whole() async throws {
        let device = try await Device("CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT)", tables: ["note"])
        let found = try await device.writer.read { db in
            var found: [String: LibraryTable.Columns] = [:]
            let names = try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
            for name in names.filter(Self.isListed) {
                var columns: LibraryTable.Columns = []
                for column in try db.columns(in: name) {
                    switch column.name {
                    case "scope": columns.insert(.scope)
                    case "entity": columns.insert(.entity)
                    case "record": columns.insert(.record)
                    case "blocker_record": columns.insert(.blocker)
                    default: break
                    }
                }
                if !columns.isEmpty { found[name] = columns }
            }
            return found
        }
        let listed = Dictionary(uniqueKeysWithValues: LibraryTable.all.map { ($0.sql, $0.columns) })
        #expect(found == listed)
    }

    @Test("the tables that follow an event have the columns by which it is found")
    func events() {
        for table in LibraryTable.following(.rename) { #expect(table.columns.isSuperset(of: [.entity, .record])) }
        for table in LibraryTable.following(.scopeRemoval) { #expect(table.columns.contains(.scope)) }
        for table in LibraryTable.following(.ruleChange) { #expect(table.columns.isSuperset(of: [.scope, .entity])) }
        for table in LibraryTable.following(.tableRemoval) { #expect(table.columns.contains(.entity)) }
    }

    @Test("a table's new spelling reaches the names of what stands in the way")
    func respelled() async throws {
        let device = try await Device("CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT)", tables: ["note"])
        let blocker = try await device.writer.write { db in
            try db.execute(
                sql: """
                    INSERT INTO tidemark_blocked(entity, record, blocker_entity, blocker_record, reason)
                    VALUES ('other', 'a', 'note', 'b', 'awaiting_id')
                    """)
            for table in LibraryTable.all where table.columns.contains(.entity) {
                try table.respell(db, entity: "note", as: "Note")
            }
            return try String.fetchAll(db, sql: "SELECT blocker_entity || entity FROM tidemark_blocked")
        }
        #expect(blocker == ["Noteother"])
    }
}
