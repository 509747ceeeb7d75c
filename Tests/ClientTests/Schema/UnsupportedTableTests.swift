import Foundation
import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

@Suite("Tables that cannot be synced")
struct UnsupportedTableTests {
    private static let schema = """
        CREATE TABLE good (id TEXT PRIMARY KEY, body TEXT);
        CREATE VIRTUAL TABLE search USING fts5(body);
        CREATE VIEW seen AS SELECT id FROM good;
        CREATE TABLE keyless (a TEXT);
        CREATE TABLE folded (a TEXT COLLATE NOCASE PRIMARY KEY);
        CREATE TABLE crossed (a TEXT COLLATE NOCASE, PRIMARY KEY (a COLLATE BINARY));
        CREATE TABLE taken (a TEXT PRIMARY KEY, tidemark_x TEXT, "$y" TEXT);
        CREATE TABLE " blank " (a TEXT PRIMARY KEY);
        CREATE TABLE counted (a INTEGER PRIMARY KEY AUTOINCREMENT);
        """

    private let bad = [
        "search", "search_data", "search_config", "seen", "keyless", "folded", "crossed", "taken", " blank ",
        "sqlite_sequence", "nowhere",
    ]

    private func device() async throws -> Device {
        let device = try await Device("CREATE TABLE first (id TEXT PRIMARY KEY)", tables: ["first"])
        try await device.sql(Self.schema)
        return device
    }

    @Test("all of them are named in one answer, each with its reason, and nothing is put into the file")
    func together() async throws {
        let device = try await device()
        let error = await #expect(throws: SyncError.self) {
            let engine = try SyncEngine(
                for: device.writer, tables: (bad + ["good"]).map { .table($0) }, scopes: ["w:1"],
                transport: device.wire)
            try await engine.install()
        }
        #expect(error?.code == .tableUnsupported)
        #expect(error?.recovery == .needsApp)
        let lines = try #require(error?.detail).split(separator: "\n")
        #expect(!lines.contains { $0.contains("good") })
        for (table, reason) in [
            ("search", "virtual"), ("search_data", "virtual table"), ("search_config", "virtual table"),
            ("seen", "view"), ("keyless", "no primary key"), ("folded", "collation"), ("crossed", "collation"),
            ("tidemark_x", "reserved"), ("$y", "reserved"), (" blank ", "not a table name"),
            ("sqlite_sequence", "reserved"),
            ("nowhere", "no table"),
        ] {
            #expect(lines.contains { $0.contains("'\(table)'") && $0.contains(reason) }, "\(table): \(lines)")
        }
        #expect(try await device.count("sqlite_master WHERE name LIKE '%search%' AND name LIKE 'tidemark%'") == 0)
    }

    @Test("the tables of a search index are refused, and the app goes on writing")
    func searchIndex() async throws {
        let device = try await device()
        await #expect(throws: SyncError.self) {
            try await SyncEngine(
                for: device.writer, tables: [.table("search_content"), .table("search_data")], scopes: ["w:1"],
                transport: device.wire
            ).install()
        }
        try await device.sql("INSERT INTO search VALUES ('tide')")
        #expect(try await device.rows("SELECT body FROM search WHERE search MATCH 'tide'") == [#""tide""#])
    }

    @Test("a temporary table is none of the file's, and one that hides a table of the file is told")
    func temporary() async throws {
        let device = try await device()
        try await device.sql("CREATE TEMP TABLE draft (id TEXT PRIMARY KEY); CREATE TEMP TABLE good (id TEXT)")
        for (table, reason) in [("draft", "temporary"), ("good", "hidden")] {
            let error = await #expect(throws: SyncError.self) {
                try await SyncEngine(
                    for: device.writer, tables: [.table(table)], scopes: ["w:1"], transport: device.wire
                ).install()
            }
            #expect(error?.code == .tableUnsupported && error?.detail.contains(reason) == true)
        }
    }

    @Test("one that is refused is told as it always was")
    func alone() async throws {
        let device = try await device()
        let error = await #expect(throws: SyncError.self) {
            try await SyncEngine(
                for: device.writer, tables: [.table("keyless")], scopes: ["w:1"], transport: device.wire
            ).install()
        }
        #expect(error?.detail == "Table 'keyless' has no primary key.")
        #expect(error?.hint.contains("PRIMARY KEY") == true)
    }
}
