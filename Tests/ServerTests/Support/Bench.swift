import Foundation
import TidemarkSQLite

@testable import TidemarkServer
@testable import TidemarkWire

/// A real server engine over a real SQLite file, and a device that speaks to it in raw requests.
final class Bench: @unchecked Sendable {  // because the tests of one bench run one after the other
    let directory: URL
    private(set) var store: SQLiteStore
    private(set) var server: SyncServer
    let entities: [EntityDeclaration]
    let limits: Limits
    private let rules: [EntityRule]
    private let rejectionLimit: Int
    var clock: Int64 = 1_000_000

    init(
        entities: [EntityDeclaration] = [], isStrict: Bool = false, limits: Limits = Limits(), rules: [EntityRule] = [],
        rejectionLimit: Int = 10_000
    ) throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        self.entities = entities
        self.limits = limits
        self.rules = rules
        self.rejectionLimit = rejectionLimit
        store = try SQLiteStore(path: directory.appending(path: "sync.sqlite").path)
        server = SyncServer(store: store, configuration: .still)
        server = SyncServer(
            store: store, entities: entities, isStrict: isStrict, limits: limits, configuration: configuration(),
            rules: rules)
    }

    deinit {
        try? store.close()
        try? FileManager.default.removeItem(at: directory)
    }

    private func configuration() -> SyncServer.Configuration {
        var configuration = SyncServer.Configuration.still
        configuration.rejectionLimit = rejectionLimit
        configuration.uptime = { .zero }
        configuration.now = { [unowned self] in Date(milliseconds: clock) }
        return configuration
    }

    /// Closes the store, does something with its file, and opens it again: a new incarnation.
    func reopen(_ work: (URL) throws -> Void = { _ in }) throws {
        try store.close()
        try work(directory.appending(path: "sync.sqlite"))
        store = try SQLiteStore(path: directory.appending(path: "sync.sqlite").path)
        server = SyncServer(
            store: store, entities: entities, limits: limits, configuration: configuration(), rules: rules)
    }

    // MARK: Requests

    func exchange(
        _ operations: [String] = [], client: String = "device-aaaa", scope: String = "s", since: String? = nil,
        limit: Int? = nil, acked: String = "{}", access: Access = .readWrite(as: "ada"),
        mode: ExchangeMode = .pushAndPull
    ) async throws -> Answer {
        var members = [#""scope":"\#(scope)","clientId":"\#(client)","acked":\#(acked)"#]
        if let since { members.append(#""since":"\#(since)""#) }
        if let limit { members.append(#""limit":\#(limit)"#) }
        members.append(#""operations":[\#(operations.joined(separator: ","))]"#)
        let body = Array("{\(members.joined(separator: ","))}".utf8)
        return try Answer(try await server.exchange(body, mode: mode) { _ in access })
    }

    func changes(
        scope: Scope = "s", since: String? = nil, limit: Int64? = nil, access: Access = .read(as: "ada")
    ) async throws -> Answer {
        try Answer(try await server.changes(in: scope, since: since, limit: limit, access: access))
    }

    /// Pulls to the end of the scan, page by page.
    func pullAll(scope: Scope = "s", since: String? = nil, limit: Int64 = 500) async throws -> Answer {
        var answer = try await changes(scope: scope, since: since, limit: limit)
        var all = answer.changes
        while answer.hasMore {
            answer = try await changes(scope: scope, since: answer.nextSince, limit: limit)
            all += answer.changes
        }
        answer.changes = all
        return answer
    }
}

/// An operation as a device writes it.
func upsert(
    _ number: Int, _ id: String, _ fields: String, base: Int64? = nil, entity: String = "task",
    lane: String = "lane-aaaa", extra: String = ""
) -> String {
    let base = base.map { #","baseVersion":\#($0)"# } ?? ""
    return #"""
        {"lane":"\#(lane)","number":\#(number),"type":"upsert","entity":"\#(entity)","id":"\#(id)"\#(base)\#(extra),\#
        "fields":\#(fields)}
        """#
}

func delete(
    _ number: Int, _ id: String, base: Int64, entity: String = "task", lane: String = "lane-aaaa"
) -> String {
    let key = #""lane":"\#(lane)","number":\#(number)"#
    return #"{\#(key),"type":"delete","entity":"\#(entity)","id":"\#(id)","baseVersion":\#(base)}"#
}

/// An answer, read by Foundation: another parser than the one under test.
struct Answer {
    struct Change: Equatable {
        var type: String
        var entity: String
        var id: String
        var version: Int64
        var data: NSDictionary?
        var time: String?
    }

    var bytes: [UInt8]
    var members: [String: Any]
    var results: [[String: Any]]
    var changes: [Change]
    var nextSince: String?
    var hasMore: Bool
    var head: Int64

    init(_ bytes: [UInt8]) throws {
        self.bytes = bytes
        let object = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] ?? [:]
        members = object
        results = object["results"] as? [[String: Any]] ?? []
        changes = (object["changes"] as? [[String: Any]] ?? []).map { change in
            Change(
                type: change["type"] as? String ?? "", entity: change["entity"] as? String ?? "",
                id: change["id"] as? String ?? "", version: change["version"] as? Int64 ?? -1,
                data: change["data"] as? NSDictionary, time: (change["updatedAt"] ?? change["deletedAt"]) as? String)
        }
        nextSince = object["nextSince"] as? String
        hasMore = object["hasMore"] as? Bool ?? false
        head = object["head"] as? Int64 ?? -1
    }

    var statuses: [String] { results.map { $0["status"] as? String ?? "" } }
    var versions: [Int64] { results.map { $0["version"] as? Int64 ?? -1 } }
    func errorCode(_ index: Int) -> String? { (results[index]["error"] as? [String: Any])?["code"] as? String }
}

/// The problem that a request is answered with.
func problem(_ work: () async throws -> Void) async -> Problem? {
    do {
        try await work()
        return nil
    } catch {
        return error as? Problem
    }
}
