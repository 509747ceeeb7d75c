import Foundation
import GRDB
import Synchronization
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// A directory that goes away with the test.
final class TestDirectory: Sendable {
    let url = FileManager.default.temporaryDirectory.appending(path: "tidemark-client-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: url) }
}

/// The wire of a test: each request goes to the next scripted step, or else to the server behind.
actor Wire: Transport {
    typealias Step = @Sendable (TransportRequest, any Transport) async throws -> TransportResponse

    private var inner: any Transport
    private var steps: [Step] = []
    private var pageSteps: [Step] = []
    private var recordSteps: [Step] = []
    private var changesSteps: [Step] = []
    private(set) var requests: [TransportRequest] = []
    /// The exchanges' answers as text.
    private(set) var answers: [String] = []

    struct Lost: Error {}

    init(to inner: any Transport) { self.inner = inner }

    /// From now on another server answers.
    func connect(to inner: any Transport) { self.inner = inner }

    /// What happens to the next exchange or push, behind those that have a step already.
    func next(_ step: @escaping Step) { steps.append(step) }

    /// The next one never arrives.
    func loseRequest() { next { _, _ in throw Lost() } }

    /// The next one is done on the server, and nobody hears of it.
    func loseAnswer() {
        next { request, inner in
            _ = try await inner.send(request)
            throw Lost()
        }
    }

    /// The same for pages of a snapshot.
    func nextPage(_ step: @escaping Step) { pageSteps.append(step) }

    /// The same for records that are asked for by name.
    func nextRecords(_ step: @escaping Step) { recordSteps.append(step) }

    /// The same for pages of one table's changes.
    func nextChanges(_ step: @escaping Step) { changesSteps.append(step) }

    /// The bodies of exchanges and pushes as text.
    var bodies: [String] {
        requests.filter { $0.method == "POST" }.map { String(decoding: $0.body, as: UTF8.self) }
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        requests.append(request)
        let step: Step?
        if request.path == "/sync/snapshot" {
            step = pageSteps.isEmpty ? nil : pageSteps.removeFirst()
        } else if request.path == "/sync/changes" {
            step = changesSteps.isEmpty ? nil : changesSteps.removeFirst()
        } else if request.path.hasPrefix("/sync/records/") {
            step = recordSteps.isEmpty ? nil : recordSteps.removeFirst()
        } else {
            step = request.method == "POST" && !steps.isEmpty ? steps.removeFirst() : nil
        }
        let response = if let step { try await step(request, inner) } else { try await inner.send(request) }
        if request.method == "POST" { answers.append(String(decoding: response.body, as: UTF8.self)) }
        return response
    }
}

/// One device: a real file with its own schema, captured and connected.
final class Device: Sendable {
    let directory: TestDirectory
    let path: String
    let writer: any DatabaseWriter
    let wire: Wire
    let tables: [SyncedTable]
    let scopes: [Scope]
    static let scope: Scope = "w:1"

    /// - Parameters:
    ///   - schema: SQL that runs before the tables are captured.
    ///   - synced: the tables with their rules; else all of `tables` lie in the one scope.
    ///   - access: what the server grants the device.
    init(
        _ schema: String, tables: [String] = [], server: SyncServer? = nil, in directory: TestDirectory? = nil,
        name: String = "device", usesPool: Bool = false, synced: [SyncedTable]? = nil,
        scopes: [Scope] = [Device.scope],
        access: @escaping @Sendable (Scope) async throws -> Access = { _ in .readWrite(as: "ada") }
    ) async throws {
        let directory = try directory ?? TestDirectory()
        self.directory = directory
        path = directory.url.appending(path: "\(name).sqlite").path
        writer = usesPool ? try DatabasePool(path: path) : try DatabaseQueue(path: path)
        let server = try server ?? Self.server(in: directory, name: "server-of-\(name)")
        wire = Wire(to: InProcessTransport(to: server, authorize: access))
        self.tables = synced ?? tables.map { .table($0) }
        self.scopes = scopes
        try await writer.write { db in try db.execute(sql: schema) }
        try await engine().install()
    }

    static func server(
        in directory: TestDirectory, name: String = "server", entities: [EntityDeclaration] = [],
        rules: [EntityRule] = []
    ) throws -> SyncServer {
        SyncServer(store: try store(in: directory, name: name), entities: entities, rules: rules)
    }

    static func store(in directory: TestDirectory, name: String = "server") throws -> SQLiteStore {
        try SQLiteStore(path: directory.url.appending(path: "\(name).sqlite").path)
    }

    func engine(
        _ configuration: SyncConfiguration = SyncConfiguration(), scopes: [Scope]? = nil,
        onConflict: ConflictHandler? = nil
    ) throws -> SyncEngine {
        try SyncEngine(
            for: writer, tables: tables, scopes: scopes ?? self.scopes, transport: wire, configuration: configuration,
            onConflict: onConflict)
    }

    func sync(_ scopes: [Scope]? = nil) async throws { try await engine(scopes: scopes).syncNow() }

    /// Syncs these devices, one after the other.
    static func sync(_ devices: Device...) async throws { for device in devices { try await device.sync() } }

    func sql(_ sql: String) async throws { try await writer.write { db in try db.execute(sql: sql) } }

    /// Rows as text, each value as SQLite quotes it.
    func rows(_ sql: String) async throws -> [String] { try await writer.quotedRows(sql) }

    func count(_ sql: String) async throws -> Int { try await writer.count(of: sql) }

    /// Keys of marked records, in the order of their marks.
    func marked(_ table: String, key: String = "id") async throws -> [String] {
        try await rows(
            "SELECT \(key) FROM tidemark_shadow_\(table) WHERE tidemark_mark IS NOT NULL ORDER BY tidemark_mark, \(key)"
        ).map { $0.replacing("\"", with: "") }
    }

    /// The members of the operations in the outbox that have no verdict.
    func sealed() async throws -> [String] {
        try await writer.read { db in
            try String.fetchAll(
                db, sql: "SELECT CAST(members AS TEXT) FROM tidemark_operation WHERE finished_at IS NULL ORDER BY id")
        }
    }

    /// Seals what is marked, as an exchange does before it sends.
    func seal(
        lane: String = "lane-0001", declarations: Declarations = Declarations()
    ) async throws -> [OutboxEntry] {
        let (schema, scope) = (try await installed(), Self.scope)
        return try await Dependencies.current.use(writer, .write, at: .seal) { db in
            try db.committed { db in
                try OutboxBatcher(
                    db: db, schema: schema, scope: try ScopeRecord.read(db, scope), declarations: declarations,
                    lane: lane, now: 1
                ).batch()
            }
        }
    }

    func installed() async throws -> SyncSchema {
        let (tables, scope) = (try SyncedTable.resolve(tables, scopes: [Self.scope]), Self.scope)
        return try await Dependencies.current.use(writer, .write, at: .install) { db in
            try db.committed { db in try Installation.install(db, tables: tables, scopes: [scope]) }
        }
    }

    /// Applies an answer written by hand.
    @discardableResult
    func apply(_ json: String, since: String? = nil) async throws -> Applier.Outcome {
        let schema = try await installed()
        let transaction = ApplyTransaction(
            answer: try Answer(body: Array(json.utf8)), scope: Self.scope, since: since, acknowledged: [:],
            lane: "lane-0001", schema: schema, declarations: Declarations(), now: 2)
        return try await Dependencies.current.use(writer, .write, at: .apply) { db in try transaction.run(db) }
    }

    /// A page of changes as the server writes it.
    static func page(
        _ changes: [String], since: String? = nil, next: String = "T1", head: Int = 100, hasMore: Bool = false,
        results: [String] = []
    ) -> String {
        """
        {"results":[\(results.joined(separator: ","))],"scope":"w:1","since":\(since.map { "\"\($0)\"" } ?? "null"),
        "epoch":"e1","changes":[\(changes.joined(separator: ","))],"nextSince":"\(next)","hasMore":\(hasMore),
        "head":\(head)}
        """
    }

    static func upsert(_ entity: String, _ id: String, _ version: Int, _ data: String) -> String {
        #"{"type":"upsert","entity":"\#(entity)","id":"\#(id)","version":\#(version),"data":\#(data)}"#
    }

    static func delete(_ entity: String, _ id: String, _ version: Int) -> String {
        #"{"type":"delete","entity":"\#(entity)","id":"\#(id)","version":\#(version)}"#
    }
}

let noteSchema = """
    CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT, rank INTEGER, slug TEXT UNIQUE);
    """
