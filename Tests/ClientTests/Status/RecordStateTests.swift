import Foundation
import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

@Suite("States: how one record stands")
struct RecordStateTests {
    @Test("an unknown table, an id that no such table has, and one that nobody knows are errors")
    func unknown() async throws {
        let device = try await Device(
            noteSchema + "CREATE TABLE list (id INTEGER PRIMARY KEY); CREATE TABLE other (id TEXT PRIMARY KEY)",
            tables: ["note", "list"])
        let engine = try device.engine()
        for (table, id, code) in [
            ("nowhere", "1", "table_unsupported"), ("other", "1", "table_unsupported"),
            ("note", "n1", "record_unknown"), ("note", "", "record_unknown"), ("list", "1", "record_unknown"),
            ("list", "one", "record_unknown"),
        ] {
            let error = await #expect(throws: SyncError.self) { try await engine.state(of: table, id: id) }
            #expect(error?.code.rawValue == code, "\(table) \(id)")
            #expect(error?.recovery == .needsApp)
        }
    }

    @Test("a record that was deleted, here or elsewhere, or is quarantined, is known")
    func gone() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let engine = try device.engine()
        try await device.sql("INSERT INTO note (id) VALUES ('n1'), ('n2')")
        try await device.sync()
        #expect(try await engine.state(of: "note", id: "n1") == .confirmed)
        try await device.sql("DELETE FROM note WHERE id = 'n1'")
        #expect(try await engine.state(of: "note", id: "n1") == .pending)
        try await device.sync()
        #expect(try await engine.state(of: "note", id: "n1") == .confirmed)
    }

    @Test("a row that was there before the first capture is pending until it was held against the server's")
    func preexisting() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let insert = "INSERT INTO note (id, title) VALUES ('n1', 'x')"
        let device = try await Device(noteSchema + insert, tables: ["note"], server: server, in: directory)
        let engine = try device.engine()
        #expect(try await engine.state(of: "note", id: "n1") == .pending)
        try await engine.syncNow()
        #expect(try await engine.state(of: "note", id: "n1") == .confirmed)
    }

    private struct Todo: Codable, FetchableRecord, PersistableRecord {
        var id: UUID
        var title: String
    }

    /// Its key is stored as text.
    private struct Note: Codable, FetchableRecord, PersistableRecord {
        var id: UUID
        var title: String

        static func databaseUUIDEncodingStrategy(for column: String) -> DatabaseUUIDEncodingStrategy {
            .lowercaseString
        }
    }

    private struct Line: Codable, PersistableRecord {
        var number: Int
        var list: String
    }

    @Test("a UUID is found as GRDB stores it, and so is a record by its key")
    func typed() async throws {
        let device = try await Device(
            noteSchema
                + """
                CREATE TABLE todo (id BLOB PRIMARY KEY, title TEXT);
                CREATE TABLE line (list TEXT, number INTEGER, PRIMARY KEY (list, number));
                """, tables: ["note", "todo", "line"])
        let engine = try device.engine()
        let (todo, note) = (Todo(id: UUID.v7(), title: "x"), Note(id: UUID.v7(), title: "x"))
        let line = Line(number: 7, list: "a")
        try await device.writer.write { db in
            try todo.insert(db)
            try note.insert(db)
            try line.insert(db)
        }
        for expected in [RecordState.pending, .confirmed] {
            #expect(try await engine.state(of: "todo", id: todo.id) == expected)
            #expect(try await engine.state(of: todo) == expected)
            #expect(try await engine.state(of: "note", id: note.id) == expected)
            #expect(try await engine.state(of: note) == expected)
            #expect(try await engine.state(of: line) == expected)
            #expect(try await engine.state(of: "line", id: #"["a",7]"#) == expected)
            try await device.sync()
        }
        let error = await #expect(throws: SyncError.self) {
            try await engine.state(of: Todo(id: UUID.v7(), title: "x"))
        }
        #expect(error?.code == .recordUnknown)
        await #expect(throws: SyncError.self) { try await engine.state(of: "todo", id: UUID.v7()) }
    }

    @Test("an integer key is asked for as a number or in decimal")
    func numbers() async throws {
        let device = try await Device("CREATE TABLE list (id INTEGER PRIMARY KEY)", tables: ["list"])
        try await device.sql("INSERT INTO list VALUES (7)")
        let engine = try device.engine()
        #expect(try await engine.state(of: "list", id: 7) == .pending)
        #expect(try await engine.state(of: "list", id: "7") == .pending)
        await #expect(throws: SyncError.self) { try await engine.state(of: "list", id: 8) }
    }
}
