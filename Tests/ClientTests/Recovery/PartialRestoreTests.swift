import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("Records that a restored server has got back in part (I2, I11)")
struct PartialRestoreTests {
    @Test("an edit of a record that is back in part leaves its device with what the server has of it")
    func edited() async throws {
        let server = try RestorableServer()
        let maker = try await server.device("a")
        let first = try await server.device("b")
        let second = try await server.device("c")
        try await server.backUp()
        try await maker.sql("INSERT INTO note VALUES ('n', 'new', 'whole', 1)")
        for device in [maker, first, second] { try await device.sync() }
        try await server.restore()
        try await first.sql("UPDATE note SET title = 'first'")
        try await second.sql("UPDATE note SET title = 'second'")
        for device in [first, second, first, second] { try await device.sync() }
        for device in [first, second] {
            #expect(try await device.rows("SELECT * FROM note") == [#""n"|"second"|NULL|NULL"#])
        }
        try await maker.sync()
        for device in [first, second, maker] {
            try await device.sync()
            #expect(try await device.rows("SELECT * FROM note") == [#""n"|"second"|"whole"|1"#])
        }
    }
}
