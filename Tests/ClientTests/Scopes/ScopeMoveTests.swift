import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Moves: a row whose column says another scope goes there, and is never in neither (A3, T26)")
struct ScopeMoveTests {
    @Test("a row is sent to the scope that its column names, and to no other")
    func spread() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i1', 'a', 'x'), ('i2', 'b', 'y')")
        try await device.sync()
        #expect(try await world.held("w:a").keys.sorted() == ["i1"])
        #expect(try await world.held("w:b").keys.sorted() == ["i2"])
        #expect(try await world.held("w:a")["i1"]?["w"] == "a")
        let other = try await world.device("e", scopes: ["w:b"])
        try await other.sync()
        #expect(try await other.items() == ["i2 b y"])
        #expect(try await device.isConfirmed())
    }

    @Test("a move inserts first and deletes after the verdict; devices that follow one side or both agree")
    func move() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        let (both, onlyA, onlyB) = (
            try await world.device("both"), try await world.device("a", scopes: ["w:a"]),
            try await world.device("b", scopes: ["w:b"])
        )
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await device.sync()
        for other in [both, onlyA, onlyB] { try await other.sync() }
        #expect(try await onlyA.items() == ["i a x"])
        try await device.sql("UPDATE item SET w = 'b', title = 'y' WHERE id = 'i'")
        try await device.sync()
        let operations = await device.wire.bodies.filter { $0.contains(#""operations":[{"#) }.suffix(2)
        #expect(operations.first?.contains(#""type":"upsert""#) == true)
        #expect(operations.first?.contains("baseVersion") == false)
        #expect(operations.last?.contains(#""moved":true"#) == true)
        for other in [both, onlyA, onlyB] { try await other.sync() }
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:b")["i"]?["title"] == "y")
        for other in [device, both, onlyB] { #expect(try await other.items() == ["i b y"]) }
        #expect(try await onlyA.items() == [])
        for other in [device, both, onlyA, onlyB] { #expect(try await other.isConfirmed()) }
    }

    @Test("the two halves of a move arrive in either order, with a start of the app between", arguments: [true, false])
    func order(deleteFirst: Bool) async throws {
        let world = try MultiScopeWorld()
        for (from, to) in [("a", "b"), ("b", "a")] {
            let device = try await world.device("d\(from)")
            let other = try await world.device("e\(from)")
            try await device.sql("INSERT INTO item (id, w, title) VALUES ('i\(from)', '\(from)', 'x')")
            try await device.sync()
            try await other.sync()
            try await device.sql("UPDATE item SET w = '\(to)' WHERE id = 'i\(from)'")
            try await device.sync()
            let halves = [try #require(Scope("w:\(from)")), try #require(Scope("w:\(to)"))]
            for scope in deleteFirst ? halves : halves.reversed() {
                try await other.sync([scope])
                // Whatever has come so far, at most one row of the record is on screen.
                #expect(try await other.count("item WHERE id = 'i\(from)'") <= 1)
            }
            #expect(try await other.items().contains("i\(from) \(to) x"))
            #expect(try await other.isConfirmed())
        }
    }

    @Test("there and back again, whatever was sent meanwhile", arguments: 0..<4)
    func thereAndBack(syncs: Int) async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await device.sync()
        let other = try await world.device("e")
        try await other.sync()
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i'")
        // The insert in b alone; with its delete in a; or neither.
        if syncs == 1 { try await device.sync(["w:b"]) }
        if syncs == 2 { try await device.sync() }
        if syncs == 3 {
            try await device.sync(["w:b"])
            try await other.sync(["w:b"])
        }
        try await device.sql("UPDATE item SET w = 'a', title = 'back' WHERE id = 'i'")
        try await device.sync()
        for _ in 0..<2 { try await other.sync() }
        #expect(try await world.held("w:a")["i"]?["title"] == "back")
        #expect(try await world.held("w:b").isEmpty)
        for one in [device, other] {
            #expect(try await one.items() == ["i a back"])
            #expect(try await one.isConfirmed())
        }
    }

    @Test("a move that is not sealed yet, and ends where it began, is an edit like any other")
    func undone() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await device.sync()
        try await device.sql(
            "UPDATE item SET w = 'b' WHERE id = 'i'; UPDATE item SET w = 'a', note = 'n' WHERE id = 'i'")
        try await device.sync()
        let body = await device.wire.bodies.last { $0.contains(#""operations":[{"#) }
        #expect(body?.contains(#""fields":{"note":"n"}"#) == true)
        #expect(try await device.isConfirmed())
    }

    @Test("a row that is moved and deleted before anything was sent is deleted where it was")
    func deleteAfterMove() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await device.sync()
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i'; DELETE FROM item")
        try await device.sync()
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:b").isEmpty)
        #expect(try await device.isConfirmed())
    }

    @Test("a delete that comes between the move's two halves reaches both scopes")
    func deleteBetween() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await device.sync()
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i'")
        try await device.sync(["w:b"])
        try await device.sql("DELETE FROM item")
        try await device.sync()
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:b").isEmpty)
        #expect(try await device.isConfirmed())
    }

    private static let refusal = EntityRule("item") { edit in
        edit.scope == "w:b" && !edit.isDelete ? .reject(code: "not_here", detail: "d") : .accept
    }

    @Test(
        "a move whose insert is refused puts the row back where it was, and keeps what was refused",
        .records("place leaving, arrival refused"))
    func refused() async throws {
        let world = try MultiScopeWorld(rules: [Self.refusal])
        let device = try await world.device("d")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await device.sync()
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i'")
        try await device.sync(["w:b"])
        #expect(try await device.items() == ["i a x"])
        try await device.sync()
        #expect(try await world.held("w:a")["i"]?["title"] == "x")
        #expect(try await device.engine().rejectedOperations().map(\.scope) == ["w:b"])
        #expect(try await device.isConfirmed())
    }

    @Test("a row that moves on, or is deleted, while its insert is refused, ends where it was meant to")
    func refusedMeanwhile() async throws {
        let world = try MultiScopeWorld(rules: [Self.refusal])
        let device = try await world.device("d")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'), ('j', 'a', 'x')")
        try await device.sync()
        try await device.sql("UPDATE item SET w = 'b'")
        await device.wire.loseAnswer()
        _ = try? await device.sync(["w:b"])
        try await device.sql("UPDATE item SET w = 'c' WHERE id = 'i'; DELETE FROM item WHERE id = 'j'")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await device.items() == ["i c x"])
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:c").keys.sorted() == ["i"])
        #expect(try await device.isConfirmed())
    }

    @Test("an edit that meets a move: it goes along where the mover had seen it, and is listed as lost where not")
    func editAgainstMove() async throws {
        let world = try MultiScopeWorld()
        let (mover, editor) = (try await world.device("d"), try await world.device("e"))
        try await mover.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'), ('j', 'a', 'x')")
        try await mover.sync()
        try await editor.sync()
        try await editor.sql("UPDATE item SET note = 'seen' WHERE id = 'i'")
        try await editor.sync()
        try await mover.sql("UPDATE item SET w = 'b' WHERE id = 'i'")
        try await mover.sync(["w:a"])
        try await mover.sync()
        #expect(try await world.held("w:b")["i"]?["note"] == "seen")
        // Not seen: the move of j is on its way when the edit comes.
        try await mover.sql("UPDATE item SET w = 'b' WHERE id = 'j'")
        try await mover.sync(["w:b"])
        try await editor.sql("UPDATE item SET note = 'unseen' WHERE id = 'j'")
        try await editor.sync(["w:a"])
        try await mover.sync()
        for _ in 0..<2 { for one in [editor, mover] { try await one.sync() } }
        for one in [mover, editor] {
            #expect(try await one.items() == ["i b x", "j b x"])
            #expect(try await one.isConfirmed())
        }
        #expect(try await editor.engine().conflicts().map { $0.fields.map(\.name) } == [["note"]])
    }

    @Test("two devices move one row to two scopes: both keep it, the first by name is on screen, everywhere the same")
    func conflictingMoves() async throws {
        let world = try MultiScopeWorld()
        let (one, two) = (try await world.device("d"), try await world.device("e"))
        let (onlyC, late) = (try await world.device("c", scopes: ["w:c"]), try await world.device("l"))
        try await one.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await one.sync()
        try await two.sync()
        try await one.sql("UPDATE item SET w = 'c', title = 'in c' WHERE id = 'i'")
        try await two.sql("UPDATE item SET w = 'b', title = 'in b' WHERE id = 'i'")
        for _ in 0..<2 { for device in [one, two, onlyC, late] { try await device.sync() } }
        #expect(try await world.held("w:a").isEmpty)
        for device in [one, two, late] {
            #expect(try await device.items() == ["i b in b"])
            #expect(try await device.engine().status().quarantined == 1)
            #expect(try await device.engine().state(of: "item", id: "i") == .confirmed)
        }
        #expect(try await onlyC.items() == ["i c in c"])
        // Whoever sees both puts it right: the row goes from b, and the one in c takes its place.
        try await late.sql("DELETE FROM item WHERE id = 'i'")
        for _ in 0..<2 { for device in [late, one, two, onlyC] { try await device.sync() } }
        for device in [one, two, late, onlyC] {
            #expect(try await device.items() == ["i c in c"])
            #expect(try await device.isConfirmed())
        }
    }

    @Test("a parent that moved away takes no children with it on a device that follows only its old scope")
    func children() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        let other = try await world.device("e", scopes: ["w:a"])
        try await device.sql("INSERT INTO item (id, w) VALUES ('i', 'a'); INSERT INTO part VALUES ('p', 'a', 'i')")
        try await device.sync()
        try await other.sync()
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i'")
        try await device.sync()
        try await other.sync()
        #expect(try await other.items() == [])
        #expect(try await other.count("part") == 1)
        #expect(try await other.count("tidemark_shadow_part") == 0)
    }

    @Test("a row that somebody deletes in its old scope meanwhile lives on in the new one", arguments: 0..<3)
    func deletedMeanwhile(kind: Int) async throws {
        let world = try MultiScopeWorld()
        let (mover, other) = (try await world.device("d"), try await world.device("e"))
        try await mover.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        for device in [mover, other] { try await device.sync() }
        try await mover.sql("UPDATE item SET w = 'b' WHERE id = 'i'")
        // The move's first half is there before the delete; the mover hears of the delete first; or of both at once.
        if kind == 0 { try await mover.sync(["w:b"]) }
        try await other.sql("DELETE FROM item WHERE id = 'i'")
        try await other.sync(["w:a"])
        if kind == 1 { try await mover.sync(["w:a"]) }
        for _ in 0..<2 { for device in [mover, other] { try await device.sync() } }
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:b")["i"]?["title"] == "x")
        for device in [mover, other] {
            #expect(try await device.items() == ["i b x"])
            #expect(try await device.isConfirmed())
        }
    }

    @Test("fields that only the server writes start anew in the new scope, at their defaults")
    func serverFields() async throws {
        let world = try MultiScopeWorld(entities: [.state("item", serverFields: ["note"])])
        let (device, other) = (try await world.device("d"), try await world.device("e"))
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await device.sync()
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["note": "by the server"]) }
        try await device.sync()
        #expect(try await device.count("item WHERE note = 'by the server'") == 1)
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i'")
        for one in [device, other] { try await one.sync() }
        #expect(try await world.held("w:b")["i"] == ["w": "b", "title": "x"])
        for one in [device, other] {
            #expect(try await one.items() == ["i b x"])
            #expect(try await one.count("item WHERE note IS NULL") == 1)
            #expect(try await one.engine().conflicts().isEmpty)
            #expect(try await one.isConfirmed())
        }
    }
}
