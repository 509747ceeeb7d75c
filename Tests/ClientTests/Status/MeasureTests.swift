import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// Sums up what goes over the wire, by itself: it knows JSON's brackets and nothing of the library's readers.
private actor Scales: Transport {
    private let inner: any Transport
    private(set) var requests = 0
    private(set) var (sent, received) = (0, 0)
    private(set) var entities: [String: SyncMeasures.Traffic] = [:]

    init(_ inner: any Transport) { self.inner = inner }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let response = try await inner.send(request)
        requests += 1
        sent += response.bytesSent
        received += response.bytesReceived
        for part in Self.elements(of: "operations", in: request.body) {
            entities[part.entity, default: .init()] += .init(sent: 1, bytesSent: part.bytes)
        }
        for part in Self.elements(of: "changes", in: response.body) {
            entities[part.entity, default: .init()] += .init(received: 1, bytesReceived: part.bytes)
        }
        return response
    }

    /// The elements of an array that is a member of a body: their entities, and how long they are.
    private static func elements(of member: String, in body: [UInt8]) -> [(entity: String, bytes: Int)] {
        let text = String(decoding: body, as: UTF8.self)
        guard let start = text.range(of: "\"\(member)\":[") else { return [] }
        var (parts, current, depth, isText, isEscaped): ([String], [UInt8], Int, Bool, Bool) = ([], [], 0, false, false)
        for byte in text[start.upperBound...].utf8 {
            if depth == 0, byte == UInt8(ascii: "]") { break }
            if depth > 0 || byte == UInt8(ascii: "{") { current.append(byte) }
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isText.toggle()
            } else if !isText, "{[".utf8.contains(byte) {
                depth += 1
            } else if !isText, "}]".utf8.contains(byte) {
                depth -= 1
                if depth == 0 {
                    parts.append(String(decoding: current, as: UTF8.self))
                    current = []
                }
            }
        }
        return parts.map { part in
            let object = try? JSONSerialization.jsonObject(with: Data(part.utf8)) as? [String: Any]
            return (object?["entity"] as? String ?? "?", part.utf8.count)
        }
    }
}

@Suite("Measures: what syncing costs on a device, and where it fails (A20)", .hangLimit)
struct MeasureTests {
    private static let schema = noteSchema + "CREATE TABLE list (id INTEGER PRIMARY KEY, name TEXT);"

    private static func device(_ name: String, _ server: SyncServer, in directory: TestDirectory) async throws -> Device
    {
        try await Device(schema, tables: ["note", "list"], server: server, in: directory, name: name)
    }

    @Test("bytes for each entity, requests and changes are what an independent sum at the transport finds")
    func sums() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let other = try await Self.device("other", server, in: directory)
        try await other.sql(
            """
            INSERT INTO note (id, title, body) VALUES ('n1', 'a "quoted" ]} text', 'ä'), ('n2', 'b', NULL);
            INSERT INTO list VALUES (1, 'x'), (2, 'y');
            """)
        try await other.sync()
        let device = try await Self.device("device", server, in: directory)
        let scales = Scales(InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
        func engine() throws -> SyncEngine {
            try SyncEngine(for: device.writer, tables: device.tables, scopes: [Device.scope], transport: scales)
        }
        // A fill, edits of this device, and a delta, with an engine of its own each.
        try await engine().syncNow()
        try await device.sql(
            "INSERT INTO note (id, title) VALUES ('n3', 'mine'); UPDATE list SET name = 'z' WHERE id = 1")
        try await engine().syncNow()
        try await other.sql("DELETE FROM note WHERE id = 'n1'; UPDATE note SET title = 'c' WHERE id = 'n2'")
        try await other.sync()
        let last = try engine()
        let report = try await last.syncNow()
        let measures = try await last.measures()
        let (entities, requests) = (await scales.entities, await scales.requests)
        let (sent, received) = (await scales.sent, await scales.received)
        #expect(measures.entities == entities)
        #expect(measures.entities["note"]?.sent == 1 && measures.entities["list"]?.received == 2)
        #expect(measures.requests == requests)
        #expect(measures.bytesSent == sent && measures.bytesReceived == received)
        #expect(report.received > 0 && measures.received == measures.entities.values.reduce(0) { $0 + $1.received })
        #expect(measures.applied == 6 && measures.density == Double(measures.received) / 6)
        #expect(measures.failures.isEmpty && measures.since != nil)
        // They are in the file, for whoever looks at it next.
        #expect(try await device.writer.read { db in try SyncMeasures.read(db) } == measures)
    }

    @Test("a filling into a table that has rows already counts each change once")
    func staged() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let other = try await Self.device("other", server, in: directory)
        try await other.sql(
            "INSERT INTO note (id) VALUES ('n1'), ('n2'), ('n3'); INSERT INTO list VALUES (1, 'x'), (2, 'y')")
        try await other.sync()
        let device = try await Self.device("device", server, in: directory)
        try await device.sql("INSERT INTO note (id, title) VALUES ('mine', 'x')")
        let scales = Scales(InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
        var configuration = SyncConfiguration()
        configuration.snapshotRange = 2...2
        let engine = try SyncEngine(
            for: device.writer, tables: device.tables, scopes: [Device.scope], transport: scales,
            configuration: configuration)
        try await engine.syncNow()
        let entities = await scales.entities
        #expect(try await engine.measures().entities == entities)
    }

    @Test("the time to the first useful data is counted once for a scope, when its first rows are here")
    func firstData() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let other = try await Self.device("other", server, in: directory)
        try await other.sql("INSERT INTO note (id) VALUES ('n1')")
        try await other.sync()
        let device = try await Self.device("device", server, in: directory)
        let engine = try device.engine()
        await device.wire.nextPage { _, _ in throw Wire.Lost() }
        _ = try? await engine.syncNow()
        #expect(try await engine.measures().firstData.scopes == 0)
        let isEmpty = Mutex<Int?>(nil)
        await device.wire.next { request, inner in
            // The exchange behind the fill: its rows are committed.
            let count = try await engine.measures().firstData.scopes
            isEmpty.withLock { $0 = count }
            return try await inner.send(request)
        }
        try await engine.syncNow()
        #expect(isEmpty.withLock { $0 } == 1)
        for _ in 0..<2 { try await device.sync() }
        let first = try await device.engine().measures().firstData
        #expect(first.scopes == 1 && first.longest == first.total)
    }

    // MARK: Failures

    /// Another program that gets in the way of the file.
    private final class Other: Sendable {
        private let queue: DatabaseQueue
        init(_ device: Device) throws {
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            queue = try DatabaseQueue(path: device.path, configuration: configuration)
        }

        func writes() async throws {
            try await queue.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        }
        /// Reads go on beside a transaction, but its commit has to wait for them.
        func reads() async throws {
            try await queue.writeWithoutTransaction { db in
                try db.execute(sql: "BEGIN")
                _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM note")
            }
        }
        func ends() async throws { try await queue.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") } }
    }

    private func failures(_ engine: SyncEngine) async throws -> [SyncMeasures.Stage: Int] {
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        return try await engine.measures().failures
    }

    @Test("a failure is counted in its stage, and kept with the next answer")
    func stages() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        try await device.sync()
        let engine = try device.engine()
        try await engine.syncNow()
        let other = try Other(device)

        await device.wire.loseRequest()
        #expect(try await failures(engine) == [.request: 1])
        await device.wire.next { _, _ in TransportResponse(status: 500) }
        #expect(try await failures(engine) == [.request: 2])
        await device.wire.next { _, _ in TransportResponse(status: 200, body: Array("<html>".utf8)) }
        #expect(try await failures(engine) == [.request: 3])

        try await other.writes()
        #expect(try await failures(engine) == [.request: 3, .seal: 1])
        try await other.ends()

        await device.wire.next { request, inner in
            let response = try await inner.send(request)
            try await other.writes()
            return response
        }
        #expect(try await failures(engine) == [.request: 3, .seal: 1, .apply: 1])
        try await other.ends()

        await device.wire.next { request, inner in
            let response = try await inner.send(request)
            try await other.reads()
            return response
        }
        #expect(try await failures(engine) == [.request: 3, .seal: 1, .apply: 1, .commit: 1])
        try await other.ends()

        #expect(try await device.writer.read { db in try SyncMeasures.read(db) }.failures == [:])
        try await engine.syncNow()
        #expect(
            try await device.engine().measures().failures == [.request: 3, .seal: 1, .apply: 1, .commit: 1])
    }

    @Test("a decision that cannot be written fails behind the commit")
    func finalize() async throws {
        let device = try await Pair.beforeConflict().there
        let other = try Other(device)
        let engine = try device.engine(onConflict: { _ in
            try await other.writes()
            return .keepMine
        })
        #expect(try await failures(engine) == [.finalize: 1])
        try await other.ends()
    }

    @Test("an app that is cancelled has not failed")
    func cancelled() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let engine = try device.engine()
        await device.wire.next { _, _ in
            withUnsafeCurrentTask { $0?.cancel() }
            throw CancellationError()
        }
        _ = await Task { try await engine.syncNow() }.result
        #expect(try await engine.measures().failures == [:])
    }

    @Test("sums of a form that this version does not know begin anew")
    func unknownForm() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.writer.write { db in try Meta.set(db, "measures", #"{"requests":"many"}"#) }
        #expect(try await device.engine().measures() == SyncMeasures())
        try await device.sync()
        #expect(try await device.engine().measures().requests > 0)
    }

    @Test("sums that no device comes to count as nothing, and others are added to them without end")
    func implausible() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        var absurd = [SyncMeasures(), SyncMeasures(), SyncMeasures()]
        absurd[0].requests = .max
        absurd[1].firstData.total = .seconds(1e19)
        absurd[2].firstData.longest = .seconds(-1e19)
        for sums in absurd {
            let text = String(decoding: try JSONEncoder().encode(sums), as: UTF8.self)
            try await device.writer.write { db in try Meta.set(db, "measures", text) }
            #expect(try await device.engine().measures() == SyncMeasures())
            try await device.sync()
            #expect((1...100).contains(try await device.engine().measures().requests))
        }
    }

    @Test("a scope's age is counted from when it was last in sync")
    func age() {
        let moment = Date(timeIntervalSince1970: 1000)
        #expect(SyncStatus.ScopeStatus(lastSync: moment).age(at: moment + 90) == .seconds(90))
        #expect(SyncStatus.ScopeStatus().age(at: moment) == nil)
    }
}
