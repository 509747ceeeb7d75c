import Testing
import TidemarkCore
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("The last write wins: by the order in which the server hears of edits, and without versions per field")
struct LastWriteWinsTests {
    @Test("Edits of different fields both stay, and have met nobody's")
    func lastWriteOtherField() async throws {
        let pair = try await Pair(.state("note", conflict: .lastWriteWins))
        try await pair.share()
        try await pair.changeThere("UPDATE note SET body = 'theirs'")
        try await pair.here.sql("UPDATE note SET title = 'mine'")
        #expect(try await pair.titles() == ["mine"])
        for device in [pair.here, pair.there] {
            #expect(try await device.rows("SELECT body, rank FROM note") == ["\"theirs\"|1"])
            #expect(try await device.engine().conflicts().isEmpty)
        }
    }

    @Test("The same field goes to whoever reaches the server later, whatever the clocks say")
    func lastWriteSameField() async throws {
        let pair = try await Pair(.state("note", conflict: .lastWriteWins))
        try await pair.share()
        try await pair.changeThere("UPDATE note SET title = 'theirs', body = 'theirs'")
        try await pair.here.sql("UPDATE note SET title = 'mine', rank = 7")
        try await pair.here.sql(
            "UPDATE tidemark_shadow_note SET tidemark_edited = \(EditStamp(milliseconds: 1000).packed)")
        #expect(try await pair.titles() == ["mine"])
        #expect(try await pair.there.rows("SELECT body, rank FROM note") == ["\"theirs\"|7"])
        let conflicts = try await pair.here.engine().conflicts()
        #expect(conflicts.map(\.rule) == [.lastWriteWins])
        #expect(
            conflicts.first?.fields == [
                .init(name: "title", base: "base", mine: "mine", theirs: "theirs", result: "mine")
            ])
        #expect(try await pair.there.engine().conflicts().isEmpty)
    }

    @Test("A base that holds no value is one that is known")
    func lastWriteNull() async throws {
        let pair = try await Pair(.state("note", conflict: .lastWriteWins))
        try await pair.share("'n1', NULL, NULL, 1, NULL")
        try await pair.changeThere("UPDATE note SET rank = 2")
        try await pair.here.sql("UPDATE note SET title = 'mine'")
        #expect(try await pair.titles() == ["mine"])
        #expect(try await pair.here.engine().conflicts().isEmpty)
    }
}
