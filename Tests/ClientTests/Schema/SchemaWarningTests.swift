import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Warnings: what an app's developer should know of the schema")
struct SchemaWarningTests {
    private func warnings(_ device: Device) async throws -> [String] {
        let engine = try device.engine()
        try await engine.install()
        return try await engine.status().warnings
    }

    @Test("integer keys that two devices may give alike are told of, with the remedies")
    func countedKeys() async throws {
        let device = try await Device(
            """
            CREATE TABLE Playlist (PlaylistId INTEGER PRIMARY KEY, Name TEXT);
            CREATE TABLE album (id INT PRIMARY KEY); CREATE TABLE pair (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
            CREATE TABLE note (id TEXT PRIMARY KEY); CREATE TABLE part (note TEXT, n INTEGER, PRIMARY KEY (note, n));
            """, tables: ["Playlist", "album", "pair", "note", "part"])
        let warnings = try await warnings(device)
        #expect(warnings.count == 1)
        let warning = try #require(warnings.first)
        #expect(warning.contains("'Playlist', 'album', 'pair'. ") && warning.contains("ids: server"))
        #expect(warning.contains("UUID") && warning.contains("63-bit"))
    }

    @Test("they are not where the ids are random, where the app says who makes them, and where the server does")
    func otherKeys() async throws {
        let schema = "CREATE TABLE list (id INTEGER PRIMARY KEY, name TEXT);"
        let random = try await Device(
            schema + "INSERT INTO list VALUES (4611686018427387904, 'x'), (-77, 'y')", tables: ["list"])
        #expect(try await warnings(random) == [])
        for ids in EntityDeclaration.IDSource.allCases {
            let device = try await Device(
                schema, tables: [], synced: [.table("list", ids: ids)])
            #expect(try await warnings(device) == [])
        }
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: [.state("LIST", ids: .server)])
        let declared = try await Device(schema, tables: ["list"], server: server, in: directory)
        #expect(try await warnings(declared).count == 1)
        let engine = try declared.engine()
        try await engine.syncNow()
        #expect(try await engine.status().warnings == [])
        // Also for whoever cannot ask the server.
        #expect(try await warnings(declared) == [])
    }

    @Test("of a key of several integers the columns count that refer to no record, unless they are random")
    func countedParts() async throws {
        let device = try await Device(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY);
            CREATE TABLE line (session INTEGER, line INTEGER, PRIMARY KEY (session, line));
            INSERT INTO line VALUES (4611686018427387904, 4611686018427387905), (1, 2);
            CREATE TABLE entry (session INTEGER REFERENCES line, n INTEGER, PRIMARY KEY (session, n));
            CREATE TABLE pair (a INTEGER REFERENCES line, b INTEGER REFERENCES line, PRIMARY KEY (a, b));
            CREATE TABLE spread (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
            INSERT INTO spread VALUES (4611686018427387904, 4611686018427387905);
            """, tables: ["list", "line", "entry", "pair", "spread"])
        let warnings = try await warnings(device)
        #expect(warnings.count == 1 && warnings.first?.contains("alike, so that") == true, "\(warnings)")
        #expect(warnings.first?.contains("'line', 'entry'. ") == true, "\(warnings)")
    }

    @Test("thirty triggers are one warning, which names three of them")
    func triggers() async throws {
        let triggers = (1...30).map {
            "CREATE TRIGGER touch\($0) AFTER UPDATE ON note BEGIN UPDATE note SET title = 'x' WHERE id = NEW.id; END;"
        }
        let device = try await Device(noteSchema + triggers.joined(), tables: ["note"])
        let warnings = try await warnings(device)
        #expect(warnings.count == 1)
        #expect(
            warnings.first?.contains("'touch1' on 'note', 'touch10' on 'note', 'touch11' on 'note' and 27 others")
                == true)
    }
}
