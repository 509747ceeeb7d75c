import Foundation
import Synchronization
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Another user signs in: what becomes of the first one's edits (T10)")
struct AccountChangeTests {
    /// Who wrote what, as the server's rules are told.
    private final class Writers: Sendable {
        private let all = Mutex<[String]>([])

        func note(_ writer: String) { all.withLock { $0.append(writer) } }
        func taken() -> [String] {
            all.withLock { list in
                defer { list = [] }
                return list
            }
        }
    }

    private struct World {
        let directory: TestDirectory
        let server: SyncServer
        let writers: Writers
        let device: Device

        func signIn(_ user: String?, on device: Device? = nil) async {
            let wire = InProcessTransport(to: server) { _ in
                guard let user else { throw Problem(.scopeForbidden, "Not granted.") }
                return .readWrite(as: user)
            }
            await (device ?? self.device).wire.connect(to: wire)
        }

        func head() async throws -> Int64 { try await server.head() }

        func notes(_ device: Device? = nil) async throws -> [String] {
            try await (device ?? self.device).rows("SELECT id, title, body FROM note ORDER BY id")
        }
    }

    /// Ada's file: an edit that the server took without her hearing of it, and three that were not sent.
    private func start() async throws -> World {
        let directory = try TestDirectory()
        let writers = Writers()
        let rule = EntityRule("note") { edit in
            writers.note("\(edit.caller.principal) \(edit.id)")
            return .accept
        }
        let server = try Device.server(in: directory, rules: [rule])
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "ada")
        let world = World(directory: directory, server: server, writers: writers, device: device)
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a'), ('n2', 'a'), ('n3', 'a')")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'sent' WHERE id = 'n1'")
        await device.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await device.sync() }
        try await device.sql(
            """
            UPDATE note SET body = 'mine' WHERE id = 'n2'; DELETE FROM note WHERE id = 'n3';
            INSERT INTO note (id, title) VALUES ('n4', 'new')
            """)
        _ = writers.taken()
        return world
    }

    private static let result = ["\"n1\"|\"sent\"|NULL", "\"n2\"|\"a\"|\"mine\"", "\"n4\"|\"new\"|NULL"]

    @Test("a file for each user: one's edits wait in her own file, and go under her own name when she is back")
    func fileForEach() async throws {
        let world = try await start()
        let head = try await world.head()
        let eve = try await Device(
            noteSchema, tables: ["note"], server: world.server, in: world.directory, name: "eve")
        await world.signIn("eve", on: eve)
        try await eve.sync()
        try await eve.sql("UPDATE note SET body = 'eve' WHERE id = 'n1'")
        try await eve.sync()
        #expect(try await world.notes(eve).count == 3)
        #expect(Set(world.writers.taken()) == ["eve n1"])
        try await world.device.sync()
        #expect(Set(world.writers.taken()) == ["ada n2", "ada n3", "ada n4"])
        #expect(try await world.head() == head + 4)
        #expect(try await world.notes().first == "\"n1\"|\"sent\"|\"eve\"")
        #expect(try await world.notes().dropFirst() == Self.result.dropFirst())
        #expect(try await world.device.sealed().isEmpty)
    }

    @Test("one file, and the other user may not see the scope: rows and edits go, and come back to the first one")
    func withoutTheScope() async throws {
        let world = try await start()
        let head = try await world.head()
        await world.signIn(nil)
        await #expect(throws: SyncError.self) { try await world.device.sync() }
        #expect(try await world.notes().isEmpty, "she sees nothing of it")
        #expect(try await world.device.sealed().isEmpty)
        let orphaned = try await world.device.engine().orphanedEdits().map { "\($0.kind) \($0.record)" }
        #expect(Set(orphaned) == ["update n1", "update n2", "delete n3", "insert n4"])
        // She is asked for it again and again, and nothing of it is sent.
        _ = try? await world.device.sync()
        #expect(try await world.head() == head)
        await world.signIn("ada")
        for _ in 0..<2 { try await world.device.sync() }
        #expect(try await world.notes() == Self.result)
        #expect(Set(world.writers.taken()) == ["ada n2", "ada n3", "ada n4"])
        #expect(try await world.head() == head + 3, "what had arrived is not done again")
        #expect(try await world.device.engine().orphanedEdits().isEmpty)
        #expect(try await world.device.count("tidemark_shadow_note") == 0)
    }

    @Test("one file, and the other user may write there, too: the file's edits go under that name, each of them once")
    func sameFile() async throws {
        let world = try await start()
        let head = try await world.head()
        await world.signIn("eve")
        for _ in 0..<2 { try await world.device.sync() }
        #expect(try await world.notes() == Self.result)
        #expect(try await world.head() == head + 3, "what had arrived is not done again")
        #expect(world.writers.taken().allSatisfy { $0.hasPrefix("eve ") })
        #expect(try await world.device.sealed().isEmpty)
        await world.signIn("ada")
        try await world.device.sync()
        #expect(try await world.head() == head + 3)
        #expect(try await world.notes() == Self.result)
        #expect(try await world.device.engine().rejectedOperations().isEmpty)
        #expect(try await world.device.count("tidemark_shadow_note") == 0)
    }

    @Test("nobody is signed in: edits wait, whatever the server says to a token that has run out")
    func signedOut() async throws {
        let world = try await start()
        let wire = InProcessTransport(to: world.server) { _ in throw Problem(.unauthenticated, "No token.") }
        await world.device.wire.connect(to: wire)
        let error = await #expect(throws: SyncError.self) { try await world.device.sync() }
        #expect(error?.code == .unauthenticated)
        #expect(try await world.notes() == Self.result)
        await world.signIn("ada")
        let head = try await world.head()
        try await world.device.sync()
        #expect(try await world.head() == head + 3)
        #expect(try await world.device.sealed().isEmpty)
    }
}
