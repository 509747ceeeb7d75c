import Testing
import TidemarkWire

@testable import Tidemark

/// A record that leaves a scope has four states there, each of which takes an exchange to come to. What else happens
/// in that short time is tried here.
@Suite("A record that leaves a scope, whatever happens meanwhile")
struct DepartureCellTests {
    private static let here: Scope = "w:1"
    private static let there: Scope = "w:2"
    private static let taken = #""status":"applied","version":VERSION"#
    private static let refusal = #""status":"rejected","error":{"code":"validation_failed","detail":"d","hint":"h"}"#

    private enum Departure: CaseIterable { case leaving, left, abandoned, sealed }

    private static func item(_ scope: String) -> @Sendable (Int) -> String {
        { Device.upsert("item", "i1", $0, #"{"w":"\#(scope)","title":"base","note":null,"slug":null}"#) }
    }

    private static let gone: @Sendable (Int) -> String = { Device.delete("item", "i1", $0) }

    /// A device on which a record leaves one scope for the other, and its open operation.
    private static func device(_ departure: Departure) async throws -> (device: HandServer, entry: OutboxEntry?) {
        let device = try await HandServer(
            MultiScopeWorld.schema, tables: [.table("item", scope: MultiScopeWorld.rule)], scopes: [here, there])
        try await device.page(in: here, item("1"))
        try await device.page(in: there)
        try await device.sql("UPDATE item SET w = '2', title = 'mine'")
        try await device.seal(in: here)
        let insert = try await device.seal(in: there)
        switch departure {
        case .leaving: return (device, insert)
        case .left: try await device.answer(insert, taken, in: there)
        case .abandoned:
            try await device.sql("DELETE FROM item")
            try await device.answer(insert, refusal, in: there)
        case .sealed:
            try await device.answer(insert, taken, in: there)
            return (device, try await device.seal(in: here))
        }
        return (device, nil)
    }

    private static func move(_ device: HandServer) async throws -> Int {
        try await device.count("tidemark_quarantine WHERE scope = 'w:1' AND move <> 0")
    }

    @Test(
        "it is deleted there by somebody else",
        .records(
            "place abandoned, tombstone", "place leaving, tombstone", "place leavingSealed, tombstone",
            "place left, tombstone"))
    func deleted() async throws {
        for departure in Departure.allCases {
            let (device, _) = try await Self.device(departure)
            #expect(try await Self.move(device) == 1)
            try await device.page(in: Self.here, Self.gone)
            #expect(try await Self.move(device) == 0)
        }
    }

    @Test(
        "the scope that it leaves goes",
        .records(
            "place abandoned, orphaned", "place leaving, orphaned", "place leavingSealed, orphaned",
            "place left, orphaned"))
    func removed() async throws {
        for departure in Departure.allCases {
            let (device, _) = try await Self.device(departure)
            try await device.remove(Self.here)
            #expect(try await Self.move(device) == 0)
        }
    }

    @Test(
        "its delete there has any verdict",
        .records(
            "place leavingSealed, verdict deferredDelete, same", "place leavingSealed, verdict outcomeUnknown, present",
            "place leavingSealed, verdict outcomeUnknown, same", "place leavingSealed, verdict rejected, gone",
            "place leavingSealed, verdict rejected, present", "place leavingSealed, verdict rejected, same",
            "place leavingSealed, verdict taken, present", "place leavingSealed, verdict taken, same"))
    func verdicts() async throws {
        let row = #"{"w":"1","title":"theirs","note":null,"slug":null}"#
        let rows = [
            "", #","record":{"version":VERSION,"data":\#(row)}"#, #","record":{"version":VERSION,"deleted":true}"#,
        ]
        let verdicts =
            rows.map { #""status":"merged","version":VERSION"# + $0 } + rows.map { Self.refusal + $0 }
            + [#""status":"settled""#, #""status":"deferred","after":1"#]
        for verdict in verdicts {
            let (device, entry) = try await Self.device(.sealed)
            try await device.answer(entry, verdict, in: Self.here)
            #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
        }
    }

    private static let namesake: @Sendable (Int) -> String = {
        Device.upsert("item", "i0", $0, #"{"w":"1","title":"theirs","note":null,"slug":"s"}"#)
    }

    @Test(
        "another record takes its unique value before the move is sealed",
        .records("place quarantined, movedOut"))
    func displaced() async throws {
        let device = try await HandServer(
            MultiScopeWorld.schema, tables: [.table("item", scope: MultiScopeWorld.rule)],
            scopes: [Self.here, Self.there])
        try await device.page(in: Self.here, Self.item("1"))
        try await device.page(in: Self.there)
        try await device.sql("UPDATE item SET w = '2', slug = 's'")
        try await device.page(in: Self.here, Self.namesake)
        #expect(try await device.count("item WHERE id = 'i1'") == 0)
        #expect(try await Self.move(device) == 0)
        let insert = try await device.seal(in: Self.there)
        #expect(try await Self.move(device) == 1)
        #expect(try await device.count("tidemark_quarantine WHERE scope = 'w:2' AND move = 0") == 1)
        try await device.answer(insert, Self.taken, in: Self.there)
        #expect(try await device.seal(in: Self.here) != nil)
    }

    @Test(
        "it comes back before its delete is sealed",
        .records(
            "place abandoned, movedIn", "place leaving, movedIn", "place left, movedIn"))
    func back() async throws {
        let (left, _) = try await Self.device(.left)
        try await left.sql("UPDATE item SET w = '1'")
        #expect(try await left.seal(in: Self.here) != nil)
        let (abandoned, _) = try await Self.device(.abandoned)
        try await abandoned.sql("INSERT INTO item(id, w, title) VALUES ('i1', '1', 'anew')")
        #expect(try await abandoned.seal(in: Self.here) != nil)
        let (leaving, insert) = try await Self.device(.leaving)
        try await leaving.sql("UPDATE item SET w = '1'")
        try await leaving.answer(insert, Self.refusal, in: Self.there)
        #expect(try await leaving.seal(in: Self.here) != nil)
        for device in [left, abandoned, leaving] { #expect(try await Self.move(device) == 0) }
    }
}
