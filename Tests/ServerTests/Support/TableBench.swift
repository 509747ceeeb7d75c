import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

/// Nodes on one store, with tables beside it that other programs write to.
final class TableBench: Sendable {
    let postgres: PostgresBench
    let nodes: [PostgresStore]
    let servers: [SyncServer]
    /// The schema of the other programs.
    let app: String

    init(
        nodes count: Int = 1, entities: [EntityDeclaration] = [], cluster: PostgresCluster? = nil
    ) async throws {
        let (postgres, nodes) = try await offPool {
            let postgres = try PostgresBench(cluster)
            return (postgres, try (0..<count).map { _ in try postgres.node() })
        }
        (self.postgres, self.nodes) = (postgres, nodes)
        servers = nodes.map { SyncServer(store: $0, entities: entities, configuration: .still) }
        app = "app_" + postgres.schema
        try await sql("CREATE SCHEMA \(app)")
    }

    var store: PostgresStore { nodes[0] }
    var server: SyncServer { servers[0] }

    /// What another program does; `~` stands for its schema.
    @discardableResult
    func sql(_ sql: String) async throws -> String {
        let statement = sql.replacing("~", with: app)
        return try await offPool { [cluster = postgres.cluster] in try cluster.psql(statement) }
    }

    func plan(
        _ table: String, _ entity: String, _ place: PostgresStore.TablePlan.Place,
        columns: PostgresStore.TablePlan.Columns = .all
    ) -> PostgresStore.TablePlan {
        PostgresStore.TablePlan(table: "\(app).\(table)", entity: entity, place: place, columns: columns)
    }

    /// Attaches a table and takes over what is in it.
    @discardableResult
    func attach(
        _ table: String, as entity: String = "task", _ place: PostgresStore.TablePlan.Place = .scope("s"),
        columns: PostgresStore.TablePlan.Columns = .all
    ) async throws -> PostgresStore.TableStatus {
        let status = try await store.attach(plan(table, entity, place, columns: columns))
        while try await !store.fill(entity, limit: 3).isLast {}
        try await drain()
        return status
    }

    /// Takes over all that was written.
    func drain() async throws {
        while try await available({ try await self.server.drainCapture() }) > 0 {}
    }

    func exchange(
        _ operations: [String], scope: String = "s", client: String = "device-aaaa", node: Int = 0,
        authorize: @escaping @Sendable (Scope) -> Access = { _ in .readWrite(as: "ada") }
    ) async throws -> Answer {
        let list = operations.joined(separator: ",")
        let body = Array(
            #"{"scope":"\#(scope)","clientId":"\#(client)","acked":{},"operations":[\#(list)]}"#.utf8)
        return try Answer(
            try await servers[node].exchange(body, mode: .pushAndPull) { authorize($0) })
    }

    /// The verdict on one operation of a device that is new, byte by byte.
    func verdict(
        _ entity: String, _ id: String, _ fields: String, scope: String, base: Int64? = nil,
        authorize: @escaping @Sendable (Scope) -> Access = { _ in .readWrite(as: "ada") }
    ) async throws -> String {
        let client = "device-" + UUID().uuidString.prefix(8).lowercased()
        let edit = upsert(1, id, fields, base: base, entity: entity)
        let answer = try await exchange([edit], scope: scope, client: client, authorize: authorize)
        let text = String(decoding: answer.bytes, as: UTF8.self)
        guard let end = text.range(of: #","syncedAt""#) else { return text }
        return String(text[..<end.lowerBound])
    }

    /// The live records of a scope as a reader gets them: `entity/id` and the fields.
    func records(_ scope: Scope = "s", since: String? = nil) async throws -> [String: NSDictionary] {
        var (records, since): ([String: NSDictionary], String?) = ([:], since)
        while true {
            let answer = try Answer(
                try await server.changes(in: scope, since: since, limit: 500, access: .read(as: "ada")))
            for change in answer.changes { records["\(change.entity)/\(change.id)"] = change.data }
            guard answer.hasMore else { return records }
            since = answer.nextSince
        }
    }

    func fields(_ id: String, _ scope: Scope = "s", entity: String = "task") async throws -> NSDictionary? {
        try await records(scope)["\(entity)/\(id)"]
    }
}
