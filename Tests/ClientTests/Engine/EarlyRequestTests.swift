import Dispatch
import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

/// Holds a device's file from the answer to one request until the next request comes.
private final class HeldFile: Sendable {
    private let release = DispatchSemaphore(value: 0)
    private let isOverdue = Mutex(false)
    private let seconds: Double

    /// - Parameter seconds: how long it waits for the request.
    init(seconds: Double = 20) { self.seconds = seconds }

    /// Whether no request came while the file was held.
    var wasOverdue: Bool { isOverdue.withLock { $0 } }

    /// Returns once nobody else can write.
    func hold(_ writer: any DatabaseWriter) async {
        await withCheckedContinuation { held in
            Thread.detachNewThread { [self] in
                writer.writeWithoutTransaction { _ in
                    held.resume()
                    if release.wait(timeout: .now() + seconds) == .timedOut { isOverdue.withLock { $0 = true } }
                }
            }
        }
    }

    func letGo() { release.signal() }
}

@Suite("The next request goes while an answer is applied")
struct EarlyRequestTests {
    private static let insert = "INSERT INTO note (id, title) VALUES "

    private static func rows(_ count: Int) -> String {
        insert + (1...count).map { "('\($0)', 'row \($0)')" }.joined(separator: ", ")
    }

    private static func small(operations: Int = 2, page: Int = 2) -> SyncConfiguration {
        var configuration = SyncConfiguration()
        configuration.operationLimit = operations
        (configuration.pageRange, configuration.firstPage) = (page...page, page)
        (configuration.snapshotRange, configuration.firstSnapshotPage) = (page...page, page)
        return configuration
    }

    private static func device(
        _ name: String, _ directory: TestDirectory, _ server: SyncServer
    ) async throws -> Device {
        try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: name, usesPool: true)
    }

    /// A device that is in sync, and another one of the same server.
    private func pair(rules: [EntityRule] = []) async throws -> (Device, Device) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, rules: rules)
        let devices = (
            try await Self.device("here", directory, server), try await Self.device("there", directory, server)
        )
        try await Device.sync(devices.0, devices.1)
        return devices
    }

    /// The file of a device is held from one exchange's answer to the next request.
    ///
    /// - Parameter then: what happens once that one has its answer.
    private func holdFile(
        of device: Device, _ file: HeldFile, until sealed: Int, then: @escaping @Sendable () async throws -> Void = {}
    ) async {
        await device.wire.next { request, server in
            let response = try await server.send(request)
            try await poll { try await device.count("tidemark_operation") >= sealed }
            await file.hold(device.writer)
            return response
        }
        await device.wire.next { request, server in
            file.letGo()
            let response = try await server.send(request)
            try await then()
            return response
        }
    }

    @Test("the next operations are sealed while a request is under way, and sent while its verdicts wait for the file")
    func push() async throws {
        let (here, there) = try await pair()
        let before = await here.wire.bodies.count
        try await here.sql(Self.rows(5))
        let file = HeldFile()
        await holdFile(of: here, file, until: 4)
        try await here.engine(Self.small()).syncNow()
        #expect(!file.wasOverdue)
        #expect(await here.wire.bodies.count == before + 3)
        try await there.sync()
        #expect(try await there.count("note") == 5)
        #expect(try await here.engine().status().isConfirmed)
        // Each page goes on where the one before it ends, though that was not applied when it was asked for.
        #expect(try await here.count("tidemark_shadow_note") == 0)
        #expect(try await here.count("tidemark_known_version") == 0)
    }

    @Test("the operations of an early request go again under their own keys where it is lost")
    func lost() async throws {
        let (here, there) = try await pair()
        let first = await here.wire.bodies.count
        try await here.sql(Self.rows(5))
        let file = HeldFile()
        await holdFile(of: here, file, until: 4) { throw Wire.Lost() }
        await #expect(throws: SyncError.self) { try await here.engine(Self.small()).syncNow() }
        #expect(!file.wasOverdue)
        #expect(try await here.count("tidemark_operation WHERE \(Outbox.isOpen)") > 0)
        try await here.engine(Self.small()).syncNow()
        try await there.sync()
        #expect(try await there.count("note") == 5)
        let sent = await here.wire.bodies[first...].map(Self.numbers)
        #expect(sent[1] == sent[2] && sent[1] == [3, 4], "\(sent)")
    }

    @Test("nothing goes early behind an edit that was refused")
    func refused() async throws {
        let rule = EntityRule("note") { $0.proposed["title"] == "row 2" ? .reject(code: "no", detail: "No.") : .accept }
        let (here, there) = try await pair(rules: [rule])
        try await here.sql(Self.rows(5))
        let file = HeldFile(seconds: 1)
        await holdFile(of: here, file, until: 4)
        try await here.engine(Self.small()).syncNow()
        #expect(file.wasOverdue)
        try await there.sync()
        #expect(try await there.count("note") == 4)
        #expect(try await here.count("tidemark_operation WHERE state = 'rejected'") == 1)
    }

    @Test("nothing goes early behind an answer with fewer verdicts than operations: numbers would be left out")
    func prefix() async throws {
        let (here, there) = try await pair()
        try await here.sql(Self.rows(5))
        await here.wire.next { request, server in
            var first = request
            first.body = try Self.keepingFirst(request.body)
            return try await server.send(first)
        }
        await here.wire.next { request, server in
            let body = String(decoding: request.body, as: UTF8.self)
            #expect(Self.numbers(body).min() == 2)
            // Operations 3 and 4 stand behind it, and might still name number 1 (W34).
            #expect(body.contains("\"acked\":{}"))
            return try await server.send(request)
        }
        try await here.engine(Self.small()).syncNow()
        try await there.sync()
        #expect(try await there.count("note") == 5)
    }

    private static func numbers(_ body: String) -> Set<Int> {
        Set(body.matches(of: /"number":(\d+)/).compactMap { Int($0.1) })
    }

    /// The request with its first operation alone.
    private static func keepingFirst(_ body: [UInt8]) throws -> [UInt8] {
        var request = try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
        request["operations"] = (request["operations"] as? [Any]).map { Array($0.prefix(1)) }
        return Array(try JSONSerialization.data(withJSONObject: request))
    }

    @Test("an edit made while the last page comes early goes at once behind it")
    func editedLate() async throws {
        let (here, there) = try await pair()
        try await there.sql(Self.rows(4))
        try await there.sync()
        let engine = try here.engine(Self.small())
        let file = HeldFile()
        await holdFile(of: here, file, until: 0) {
            try await here.sql("INSERT INTO note (id, title) VALUES ('mine', 'late')")
            await engine.wake()
        }
        try await engine.syncNow()
        #expect(!file.wasOverdue)
        #expect(try await here.count("note") == 5)
        #expect(try await here.count("tidemark_shadow_note") == 0)
    }

    @Test("no page is asked for early behind one that was not taken, since another engine has moved the checkpoint")
    func passedOver() async throws {
        let (here, there) = try await pair()
        try await there.sql(Self.rows(12))
        try await there.sync()
        let other = try SyncEngine(
            for: here.writer, tables: here.tables, scopes: [Device.scope], transport: there.wire)
        let before = await here.wire.bodies.count
        await here.wire.next { request, server in
            let response = try await server.send(request)
            try await other.syncNow()
            return response
        }
        try await here.engine(Self.small()).syncNow()
        // The page, the one behind it that had gone by then, and one from where the other engine stands.
        #expect(await here.wire.bodies.count == before + 3)
        #expect(try await here.count("note") == 12)
    }

    @Test("a page of changes is asked for while the one before it waits for the file")
    func pull() async throws {
        let (here, there) = try await pair()
        try await there.sql(Self.rows(5))
        try await there.sync()
        let file = HeldFile()
        await holdFile(of: here, file, until: 0)
        try await here.engine(Self.small()).syncNow()
        #expect(!file.wasOverdue)
        #expect(try await here.count("note") == 5)
    }

    @Test("an edit made while pages come goes with the next request, behind no page")
    func edited() async throws {
        let (here, there) = try await pair()
        try await there.sql(Self.rows(8))
        try await there.sync()
        await here.wire.next { request, server in
            let response = try await server.send(request)
            try await here.sql("INSERT INTO note (id, title) VALUES ('mine', 'now')")
            return response
        }
        await here.wire.next { request, server in
            #expect(String(decoding: request.body, as: UTF8.self).contains("\"mine\""))
            return try await server.send(request)
        }
        try await here.engine(Self.small()).syncNow()
        #expect(try await here.count("note") == 9)
    }

    @Test("a page of a snapshot is asked for while the one before it waits for the file")
    func fill() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let there = try await Self.device("there", directory, server)
        try await there.sql(Self.rows(5))
        try await there.sync()
        let here = try await Self.device("here", directory, server)
        let file = HeldFile()
        await here.wire.nextPage { request, server in
            let response = try await server.send(request)
            await file.hold(here.writer)
            return response
        }
        await here.wire.nextPage { request, server in
            file.letGo()
            return try await server.send(request)
        }
        try await here.engine(Self.small()).syncNow()
        #expect(!file.wasOverdue)
        #expect(try await here.count("note") == 5)
        let pages = await here.wire.requests.filter { $0.path == "/sync/snapshot" }
        #expect(pages.count == 3 && Set(pages).count == 3)
    }
}
