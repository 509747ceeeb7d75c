import Foundation
import GRDB
import Testing
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// Devices over one server, each with a table whose rows lie in several scopes.
struct MultiScopeWorld {
    /// Scopes that no token grants just now.
    let withdrawn = Withdrawn()
    let directory: TestDirectory
    let server: SyncServer

    static let rule = SyncedTable.ScopeRule.column("w", prefix: "w:")
    static let schema = """
        CREATE TABLE item (id TEXT PRIMARY KEY, w TEXT, title TEXT, note TEXT, slug TEXT UNIQUE);
        CREATE INDEX item_w ON item(w);
        CREATE TABLE part (id TEXT PRIMARY KEY, w TEXT, item TEXT REFERENCES item(id) ON DELETE CASCADE);
        """

    init(entities: [EntityDeclaration] = [], rules: [EntityRule] = [], limits: Limits = Limits()) throws {
        directory = try TestDirectory()
        let store = try SQLiteStore(path: directory.url.appending(path: "server.sqlite").path)
        server = SyncServer(store: store, entities: entities, limits: limits, rules: rules)
    }

    /// - Parameters:
    ///   - seeds: SQL that runs before the tables are captured.
    ///   - subscope: the one that parts are in.
    func device(
        _ name: String, scopes: [Scope] = ["w:a", "w:b", "w:c"], seeds: String = "", subscope: String? = nil
    ) async throws -> Device {
        let withdrawn = withdrawn
        return try await Device(
            Self.schema + seeds, server: server, in: directory, name: name,
            synced: [.table("item", scope: Self.rule), .table("part", scope: Self.rule, subscope: subscope)],
            scopes: scopes, access: { try await withdrawn.access(to: $0) })
    }

    /// What a scope holds on the server, by record.
    func held(_ scope: Scope) async throws -> [String: [String: String]] {
        let bytes = try await server.changes(in: scope, since: nil, limit: 5000, access: .read(as: "ada"))
        let answer = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        var rows: [String: [String: String]] = [:]
        for change in answer?["changes"] as? [[String: Any]] ?? [] where change["entity"] as? String == "item" {
            rows[change["id"] as? String ?? ""] = (change["data"] as? [String: Any] ?? [:]).compactMapValues {
                $0 as? String
            }
        }
        return rows
    }
}

/// Scopes that tokens do not grant.
actor Withdrawn {
    private var scopes: Set<Scope> = []

    func insert(_ scope: Scope) { scopes.insert(scope) }
    func remove(_ scope: Scope) { scopes.remove(scope) }

    func access(to scope: Scope) throws -> Access {
        guard !scopes.contains(scope) else { throw Problem(.scopeForbidden, "Not granted.") }
        return .readWrite(as: "ada")
    }
}

extension Device {
    /// The rows of ``MultiScopeWorld``.
    func items() async throws -> [String] {
        try await writer.read { db in
            try String.fetchAll(
                db, sql: "SELECT id || ' ' || coalesce(w, '-') || ' ' || coalesce(title, '-') FROM item ORDER BY id")
        }
    }

    /// Nothing waits, is sealed or is quarantined.
    func isConfirmed() async throws -> Bool {
        for table in [
            "tidemark_shadow_item", "tidemark_operation WHERE finished_at IS NULL", "tidemark_quarantine",
        ] where try await count(table) > 0 { return false }
        return true
    }
}
