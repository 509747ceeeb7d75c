import Foundation
import GRDB
import Tidemark
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting

extension SplitMix64 {
    /// The numbers of a world. They are those of the seed before, shifted by one, so that only seeds far apart make
    /// worlds that have nothing in common. The seeds that failed once are of these.
    init(world seed: UInt64) { self.init(seed: seed &* 0x9e37_79b9_7f4a_7c15 &+ 0x1234_5678_9abc_def1) }

    /// Seeds of worlds that have nothing in common.
    static func worlds(_ count: UInt64, from first: UInt64) -> [UInt64] { (0..<count).map { first + $0 * 7919 } }
}

/// A wire that loses requests, loses answers, repeats requests and cuts answers, by seed.
actor FaultyTransport: Transport {
    private var inner: any Transport
    private var generator: SplitMix64
    private(set) var isFaulty = true
    /// How often of a hundred times the server cannot go on from where the device stands.
    private var expiry = 0

    struct Lost: Error {}

    init(_ inner: any Transport, seed: UInt64) {
        self.inner = inner
        generator = SplitMix64(world: seed)
    }

    func heal() { isFaulty = false }
    func connect(to inner: any Transport) { self.inner = inner }
    func expire(_ percent: Int) { expiry = percent }

    /// What a server says that has forgotten what it would need.
    private func expired(_ request: TransportRequest) -> TransportResponse? {
        let code: String
        switch request.path {
        case "/sync": code = "checkpoint_expired"
        case "/sync/snapshot" where request.query.contains { $0.name == "snapshotToken" }: code = "snapshot_expired"
        default: return nil
        }
        guard generator.chance(expiry) else { return nil }
        let body = #"{"status":410,"code":"\#(code)","detail":"","reason":"retention"}"#
        return TransportResponse(
            status: 410, headers: ["Content-Type": "application/problem+json"], body: Array(body.utf8))
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        guard isFaulty else { return try await inner.send(request) }
        if generator.chance(15) { throw Lost() }
        if expiry > 0, let expired = expired(request) { return expired }
        if generator.chance(15) { _ = try await inner.send(request) }
        var response = try await inner.send(request)
        if generator.chance(15) { throw Lost() }
        if generator.chance(10), !response.body.isEmpty {
            response.body = Array(response.body.prefix(Int.random(in: 0..<response.body.count, using: &generator)))
        }
        return response
    }
}

/// A database's file, copied while nobody has it open.
enum StoreFile {
    static func copy(_ from: URL, _ to: URL) throws {
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: to.path + suffix) }
        try FileManager.default.copyItem(at: from, to: to)
    }
}

/// One device: a real SQLite file with its own schema, and its engine.
final class Device: Sendable {
    let name: String
    let queue: DatabaseQueue
    let transport: FaultyTransport
    private let path: URL

    init(_ name: String, in directory: URL, server: SyncServer, seed: UInt64) throws {
        self.name = name
        path = directory.appending(path: "\(name).sqlite")
        queue = try DatabaseQueue(path: path.path)
        try queue.write { db in try db.execute(sql: Self.schema) }
        transport = FaultyTransport(Self.wire(to: server), seed: seed)
    }

    static func wire(to server: SyncServer) -> any Transport {
        InProcessTransport(to: server) { _ in .readWrite(as: "ada") }
    }

    /// The same device, after its file was put back to what it was.
    private init(putBack device: Device) throws {
        (name, path, transport) = (device.name, device.path, device.transport)
        try StoreFile.copy(device.backup, device.path)
        queue = try DatabaseQueue(path: path.path)
    }

    private var backup: URL { path.appendingPathExtension("backup") }

    /// Puts a copy of the file aside.
    func backUp() throws {
        try queue.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
        try StoreFile.copy(path, backup)
    }

    /// The device as it was when its file was put aside; `nil` where that never happened.
    func putBack() throws -> Device? {
        guard FileManager.default.fileExists(atPath: backup.path) else { return nil }
        try queue.close()
        return try Device(putBack: self)
    }

    private static let schema = """
        CREATE TABLE project (id TEXT PRIMARY KEY, name TEXT NOT NULL, slug TEXT UNIQUE);
        CREATE TABLE task (
            id INTEGER PRIMARY KEY, project TEXT REFERENCES project(id) ON DELETE CASCADE, title TEXT, weight REAL,
            body TEXT, note BLOB, done INTEGER NOT NULL DEFAULT 0);
        """

    /// An engine per opening: each call stands for a new start of the app.
    func engine(
        page: Int, operationLimit: Int? = nil, onConflict: ConflictHandler? = nil
    ) throws -> SyncEngine {
        var configuration = SyncConfiguration()
        configuration.pageRange = page...page
        configuration.firstPage = page
        configuration.snapshotRange = page...page
        configuration.firstSnapshotPage = page
        configuration.operationLimit = operationLimit ?? 1 + page * 2
        return try SyncEngine(
            for: queue, tables: [.table("project"), .table("task")], scopes: ["w:1"], transport: transport,
            configuration: configuration, onConflict: onConflict)
    }

    /// Every row of a table, with the storage class of each value.
    func rows(_ table: String) throws -> [String] {
        try queue.read { db in
            let columns = try db.columns(in: table).map { "quote(\($0.name))" }.joined(separator: " || ',' || ")
            return try String.fetchAll(db, sql: "SELECT \(columns) FROM \(table) ORDER BY id")
        }
    }

    func count(_ sql: String) throws -> Int { try queue.read { try Int.fetchOne($0, sql: sql) ?? 0 } }
}

/// Random edits, as an app makes them.
extension Device {
    /// Words somewhere in a text that is long enough to travel as patches.
    private static func write(_ db: Database, _ text: String, into task: Int, at place: Int) throws {
        let first = (0..<120).map { "Line \($0) of a long text — ein längerer Text.\n" }.joined()
        try db.execute(
            sql: """
                UPDATE task SET body = substr(coalesce(body, :first), 1, :place) || :text
                  || substr(coalesce(body, :first), :place + 5) WHERE id = :task
                """,
            arguments: ["first": first, "place": 1 + place % 4000, "text": text, "task": task])
    }

    func edit(_ generator: inout SplitMix64, serial: Int) throws {
        let project = "p\(Int.random(in: 0..<5, using: &generator))"
        let task = Int.random(in: 0..<8, using: &generator)
        let choice = Int.random(in: 0..<12, using: &generator)
        let text = "\(name)-\(serial)"
        try queue.write { db in
            do {
                switch choice {
                case 0:
                    try db.execute(
                        sql: "INSERT INTO project VALUES (?, ?, ?)", arguments: [project, text, "s\(serial % 4)"])
                case 1:
                    try db.execute(
                        sql: "INSERT OR REPLACE INTO project VALUES (?, ?, ?)",
                        arguments: [project, text, "s\(serial % 4)"])
                case 2: try db.execute(sql: "UPDATE project SET name = ? WHERE id = ?", arguments: [text, project])
                case 3:
                    try db.execute(
                        sql: "UPDATE OR REPLACE project SET slug = ? WHERE id = ?",
                        arguments: ["s\(serial % 4)", project])
                case 4: try db.execute(sql: "DELETE FROM project WHERE id = ?", arguments: [project])
                case 5, 6:
                    try db.execute(
                        sql: """
                            INSERT INTO task (id, project, title) VALUES (?, (SELECT id FROM project WHERE id = ?), ?)
                            ON CONFLICT (id) DO UPDATE SET title = excluded.title
                            """,
                        arguments: [task, project, text])
                case 7: try db.execute(sql: "UPDATE task SET title = ? WHERE id = ?", arguments: [text, task])
                case 8 where serial % 2 == 0:
                    try db.execute(sql: "UPDATE task SET done = 1 - done WHERE id = ?", arguments: [task])
                case 8: try Self.write(db, text, into: task, at: serial * 37)
                case 9:
                    try db.execute(
                        sql: "UPDATE task SET weight = ?, note = ? WHERE id = ?",
                        arguments: [Double(serial) / 3, Data([UInt8(serial & 255), 0]), task])
                case 10: try db.execute(sql: "DELETE FROM task WHERE id = ?", arguments: [task])
                default:
                    try db.execute(sql: "UPDATE OR IGNORE task SET id = ? WHERE id = ?", arguments: [task + 1, task])
                }
            } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {}
        }
    }
}
