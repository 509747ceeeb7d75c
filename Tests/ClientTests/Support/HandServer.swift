import Foundation
import GRDB
import TidemarkCore
import TidemarkWire

@testable import Tidemark

/// A device whose server is written by hand: what a client has to understand is any answer that the protocol allows,
/// also one that Tidemark's own server gives once in a long time.
actor HandServer {
    let queue: DatabaseQueue
    private let directory: TestDirectory
    private let tables: [(name: String, rule: SyncedTable.ScopeRule)]
    private let scopes: [Scope]
    /// The newest version of each scope.
    private var heads: [Scope: Int] = [:]
    private var lanes: [Scope: String] = [:]

    /// - Parameter seeds: SQL that runs before the tables are captured.
    init(_ appSchema: String, tables: [SyncedTable], scopes: [Scope] = [Device.scope], seeds: String = "") async throws
    {
        directory = try TestDirectory()
        queue = try DatabaseQueue(path: directory.url.appending(path: "device.sqlite").path)
        self.tables = try SyncedTable.resolve(tables, scopes: scopes)
        self.scopes = scopes
        for (index, scope) in scopes.enumerated() { lanes[scope] = "lane-000\(index + 1)" }
        try await queue.write { db in try db.execute(sql: appSchema + seeds) }
        _ = try await schema()
    }

    func sql(_ sql: String) async throws { try await queue.write { db in try db.execute(sql: sql) } }

    func count(_ sql: String) async throws -> Int {
        try await queue.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM \(sql)") ?? 0 }
    }

    func schema() async throws -> SyncSchema {
        let (tables, scopes) = (tables, scopes)
        return try await Dependencies.current.use(queue, .write, at: .install) { db in
            try db.committed { db in try Installation.install(db, tables: tables, scopes: scopes) }
        }
    }

    /// The operation that is sealed of what was edited, the last of several.
    @discardableResult
    func seal(
        in scope: Scope = Device.scope, declarations: Declarations = Declarations()
    ) async throws -> OutboxEntry? {
        let (schema, lane) = (try await schema(), lanes[scope] ?? "")
        return try await Dependencies.current.use(queue, .write, at: .seal) { db in
            try db.committed { db in
                try OutboxBatcher(
                    db: db, schema: schema, scope: try ScopeRecord.read(db, scope), declarations: declarations,
                    lane: lane, now: 1
                ).batch()
            }
        }.last
    }

    /// A page of changes, each made of its version.
    ///
    /// - Parameter isLast: whether the scan ends with it.
    func page(
        in scope: Scope = Device.scope, isLast: Bool = true, _ changes: (Int) -> String...
    ) async throws {
        let before = heads[scope]
        let lines = changes.enumerated().map { index, change in change((before ?? 0) + 1 + index) }
        let head = (before ?? 0) + max(1, changes.count)
        heads[scope] = head
        let since = before.map { "T\($0)" }
        try await apply(
            """
            {"results":[],"scope":"\(scope.name)","since":\(since.map { "\"\($0)\"" } ?? "null"),"epoch":"e1",
            "changes":[\(lines.joined(separator: ","))],"nextSince":"T\(head)","hasMore":\(!isLast),"head":\(head)}
            """, in: scope, since: since)
    }

    /// A verdict, with the members that follow its key; `VERSION` stands for the scope's next version.
    func answer(
        _ entry: OutboxEntry?, _ members: String, in scope: Scope = Device.scope,
        declarations: Declarations = Declarations()
    ) async throws {
        guard let entry else { throw NothingSealed() }
        let version = heads[scope, default: 0] + 1
        if members.contains("VERSION") { heads[scope] = version }
        let key = #""lane":"\#(entry.key.lane)","number":\#(entry.key.number)"#
        let result = members.replacing("VERSION", with: "\(version)")
        try await apply("{\"results\":[{\(key),\(result)}]}", in: scope, declarations: declarations)
    }

    struct NothingSealed: Error {}

    private func apply(
        _ json: String, in scope: Scope, since: String? = nil, declarations: Declarations = Declarations()
    ) async throws {
        let transaction = ApplyTransaction(
            answer: try Answer(body: Array(json.utf8)), scope: scope, since: since, acknowledged: [:],
            lane: lanes[scope] ?? "", schema: try await schema(), declarations: declarations, now: 2)
        _ = try await Dependencies.current.use(queue, .write, at: .apply) { db in try transaction.run(db) }
    }

    /// What was written unseen is held against a server that tells nothing of the table.
    func compare(in scope: Scope = Device.scope) async throws {
        let schema = try await schema()
        _ = try await Dependencies.current.use(queue, .write, at: .inferred) { db in
            let entries = try db.consistently { db in try Inferred.uncompared(db, scope, schema, limit: 100) }
            return try InferenceTransaction(
                entries: entries, scope: scope, schema: schema, declarations: Declarations(), now: 1
            ).run(db).records
        }
    }

    /// The server has lost all operations of a scope, and they are replayed. Returns the last of them.
    func loseHistory(in scope: Scope = Device.scope) async throws -> OutboxEntry? {
        let (schema, lane) = (try await schema(), "lane-0009")
        lanes[scope] = lane
        return try await Dependencies.current.use(queue, .write, at: .recover) { db in
            let recovery = LossRecovery(db: db, schema: schema, declarations: Declarations(), now: 2)
            _ = try ApplyTransaction.withoutForeignKeys(db) {
                try CaptureSuppression.whileApplying(db, schema) {
                    try recovery.replay(scope, above: [:], lostEpoch: "e1", lane: lane)
                }
                return Applier.Outcome()
            }
            return try Outbox.open(db, scope: scope, limit: 100).last
        }
    }

    /// The app decides about what waits for it.
    func decide(_ body: @escaping @Sendable (Database, SyncSchema) throws -> Void) async throws {
        let schema = try await schema()
        try await Dependencies.current.use(queue, .write, at: .decide) { db in
            try db.committed { db in try body(db, schema) }
        }
    }

    /// The scope goes: the server takes the access away, or the app leaves it.
    func remove(_ scope: Scope = Device.scope, isLoss: Bool = true) async throws {
        heads[scope] = nil
        try await Self.remove(scope, from: queue, try await schema(), isLoss: isLoss)
    }

    static func remove(
        _ scope: Scope, from writer: any DatabaseWriter, _ schema: SyncSchema, isLoss: Bool = true
    ) async throws {
        let removal = ScopeRemoval(
            scope: scope, schema: schema, declarations: Declarations(), isLoss: isLoss, now: 3)
        _ = try await Dependencies.current.use(writer, .write, at: isLoss ? .loss : .leave) { db in
            try removal.run(db)?.rows
        }
    }
}
