import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Edits made while the answer to an earlier one is under way")
struct InFlightTests {
    /// Inserts a row, and deletes it while the insert's answer is under way.
    private func deletedUnderWay(_ entities: [EntityDeclaration]) async throws -> Device {
        let directory = try TestDirectory()
        let device = try await Device(
            noteSchema, tables: ["note"], server: Device.server(in: directory, entities: entities), in: directory)
        try await device.sync()
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'made')")
        await device.wire.next { request, inner in
            let answer = try await inner.send(request)
            try await device.sql("DELETE FROM note")
            return answer
        }
        return device
    }

    @Test("a delete of an own edit is not undone by that edit, where deletes lose")
    func deleteAfterInsert() async throws {
        let device = try await deletedUnderWay([EntityDeclaration("note", deletes: .lose)])
        for _ in 0..<2 { try await device.sync() }
        #expect(try await device.count("note") == 0)
        #expect(try await device.engine().conflicts().isEmpty)
    }

    @Test("nor where the row was only changed")
    func deleteAfterUpdate() async throws {
        let directory = try TestDirectory()
        let device = try await Device(
            noteSchema, tables: ["note"],
            server: Device.server(in: directory, entities: [EntityDeclaration("note", deletes: .lose)]), in: directory)
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'made')")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'changed'")
        await device.wire.next { request, inner in
            let answer = try await inner.send(request)
            try await device.sql("DELETE FROM note")
            return answer
        }
        for _ in 0..<2 { try await device.sync() }
        #expect(try await device.count("note") == 0)
        #expect(try await device.engine().conflicts().isEmpty)
    }

    @Test("a delete of an own edit is no conflict with it, although its answer is lost")
    func lostAnswer() async throws {
        let device = try await deletedUnderWay([])
        await device.wire.loseAnswer()
        for _ in 0..<3 { _ = try? await device.sync() }
        try await device.sync()
        #expect(try await device.count("note") == 0)
        #expect(try await device.engine().conflicts().isEmpty)
    }

    @Test("an edit of an own row whose insert was not answered does not revive it after its delete (I6)")
    func editAfterDelete() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'made')")
        await device.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await device.sync() }
        let other = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "other")
        try await other.sync()
        try await other.sql("DELETE FROM note")
        try await other.sync()
        try await device.sql("UPDATE note SET title = 'changed'")
        for _ in 0..<3 { try await device.sync() }
        try await other.sync()
        for device in [device, other] { #expect(try await device.count("note") == 0) }
        #expect(try await device.engine().rejectedOperations().count == 1)
    }
}
