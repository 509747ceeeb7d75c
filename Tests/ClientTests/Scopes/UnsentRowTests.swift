import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A row that no scope here takes, kept off its table by another one, is the device's own (A3, I13)")
struct UnsentRowTests {
    static let places = ["not a name", "c"]

    /// A device on which the record `j` cannot be sent, and `i`, which has its slug, has come.
    private func crowdedOut(_ place: String, _ world: MultiScopeWorld) async throws -> Device {
        let device = try await world.device("d", scopes: ["w:a", "w:b"])
        try await device.sql("INSERT INTO item (id, w, title, slug) VALUES ('j', '\(place)', 'own', 's')")
        try await device.sync()
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["w": "a", "title": "x", "slug": "s"]) }
        try await device.sync()
        #expect(try await device.items() == ["i a x"])
        return device
    }

    @Test("made anew, it still is nobody else's: that it is deleted then is told to no scope", arguments: places)
    func madeAnew(place: String) async throws {
        let world = try MultiScopeWorld()
        let device = try await crowdedOut(place, world)
        try await world.server.commit(to: "w:b") { $0.upsert("item", id: "j", ["w": "b", "title": "other"]) }
        try await device.sync()
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('j', '\(place)', 'anew')")
        try await device.sync()
        #expect(try await device.items() == ["i a x", "j \(place) anew"])
        try await device.sql("DELETE FROM item WHERE id = 'j'")
        let before = await device.wire.requests.count
        for _ in 0..<2 { try await device.sync() }
        let requests = await device.wire.requests.dropFirst(before)
        #expect(!requests.contains { String(decoding: $0.body, as: UTF8.self).contains(#""type":"delete""#) })
        #expect(try await device.items() == ["i a x", "j b other"])
        #expect(try await world.held("w:b").keys.sorted() == ["j"])
        #expect(try await device.isConfirmed())
    }

    @Test("made anew and deleted at once, it does not come back when its place is free", arguments: places)
    func madeAnewAndDeleted(place: String) async throws {
        let world = try MultiScopeWorld()
        let device = try await crowdedOut(place, world)
        try await device.sql(
            "INSERT INTO item (id, w, title) VALUES ('j', '\(place)', 'anew'); DELETE FROM item WHERE id = 'j'")
        try await device.sync()
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["slug": "t"]) }
        try await device.sync()
        #expect(try await device.items() == ["i a x"])
        #expect(try await device.isConfirmed())
    }

    @Test("made anew in a scope that is followed, it goes there, and what it was does not come back", arguments: places)
    func madeAnewElsewhere(place: String) async throws {
        let world = try MultiScopeWorld()
        let device = try await crowdedOut(place, world)
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('j', 'b', 'anew')")
        for _ in 0..<2 { try await device.sync() }
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["slug": "t"]) }
        try await device.sync()
        #expect(try await device.items() == ["i a x", "j b anew"])
        #expect(try await world.held("w:b")["j"]?["title"] == "anew")
        #expect(try await device.isConfirmed())
    }

    @Test("where it lost its place before anybody looked at it, it is told all the same, and goes when it is put right")
    func crowdedOutFirst() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a", "w:b"])
        try await device.sync()
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["w": "a", "title": "x", "slug": "s"]) }
        await device.wire.next { request, inner in
            try await device.sql("INSERT INTO item (id, w, title, slug) VALUES ('j', 'not a name', 'own', 's')")
            return try await inner.send(request)
        }
        for _ in 0..<2 { try await device.sync(["w:a"]) }
        #expect(try await device.items() == ["i a x"])
        #expect(try await device.engine().rejectedOperations().map(\.record) == ["j"])
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["slug": "t"]) }
        try await device.sync()
        #expect(try await device.items() == ["i a x", "j not a name own"])
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'j'")
        try await device.sync()
        #expect(try await world.held("w:b").keys.sorted() == ["j"])
        #expect(try await device.isConfirmed())
    }
}
