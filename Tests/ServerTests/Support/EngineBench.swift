import Foundation
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

/// The engine on a store of any kind, and devices that speak to it in raw requests.
final class EngineBench: @unchecked Sendable {  // because the tests of one bench run one after the other
    let bench: StoreBench
    private(set) var server: SyncServer
    let entities: [EntityDeclaration]
    private let limits: Limits
    var clock: Int64 = 1_000_000

    init(_ kind: StoreKind, entities: [EntityDeclaration] = [], limits: Limits = Limits()) throws {
        bench = try StoreBench(kind)
        self.entities = entities
        self.limits = limits
        server = SyncServer(store: bench.store, configuration: .still)
        serve()
    }

    private func serve() {
        var configuration = SyncServer.Configuration.still
        configuration.now = { [unowned self] in Date(milliseconds: clock) }
        server = SyncServer(store: bench.store, entities: entities, limits: limits, configuration: configuration)
    }

    /// Another node of the same server, which has its own memory and may know other declarations.
    func node(entities: [EntityDeclaration]) -> SyncServer {
        SyncServer(store: bench.store, entities: entities, configuration: .still)
    }

    func exchange(
        _ operations: [String], client: String = "device-aaaa", since: String? = nil, limit: Int = 500,
        access: Access = .readWrite(as: "ada"), mode: ExchangeMode = .pushAndPull, on node: SyncServer? = nil
    ) async throws -> Answer {
        let since = since.map { #""since":"\#($0)","# } ?? ""
        let body =
            #"{"scope":"s","clientId":"\#(client)",\#(since)"limit":\#(limit),"#
            + #""operations":[\#(operations.joined(separator: ","))]}"#
        return try Answer(try await (node ?? server).exchange(Array(body.utf8), mode: mode) { _ in access })
    }

    func push(
        _ operations: String..., client: String = "device-aaaa", access: Access = .readWrite(as: "ada"),
        on node: SyncServer? = nil
    ) async throws -> Answer {
        try await exchange(operations, client: client, access: access, mode: .pushOnly, on: node)
    }

    func changes(
        since: String? = nil, limit: Int64? = nil, client: String? = nil, access: Access = .readWrite(as: "ada")
    ) async throws -> Answer {
        try Answer(try await server.changes(in: "s", since: since, limit: limit, access: access, client: client))
    }

    /// Pages to the end of the scan, as one.
    func pullAll(since: String? = nil, limit: Int64 = 500, client: String? = nil) async throws -> Answer {
        var answer = try await changes(since: since, limit: limit, client: client)
        var all = answer.changes
        while answer.hasMore {
            answer = try await changes(since: answer.nextSince, limit: limit, client: client)
            all += answer.changes
        }
        answer.changes = all
        return answer
    }

    /// The digest of the scope, or what `change` asks of it instead.
    func digest(_ change: (inout DigestQuery) -> Void = { _ in }) async throws -> [String: Any] {
        var query = DigestQuery(of: "s")
        change(&query)
        return try Answer(try await server.digest(query, access: .read(as: "ada"))).members
    }
}
