import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

/// Two devices on one server, both with the same note.
struct Pair {
    let here: Device
    let there: Device
    let server: SyncServer

    init(
        _ declaration: EntityDeclaration = .state("note"), schema: String = noteSchema, rules: [EntityRule] = []
    ) async throws {
        let directory = try TestDirectory()
        server = try Device.server(in: directory, entities: [declaration], rules: rules)
        here = try await Device(
            schema, tables: [declaration.name], server: server, in: directory, name: "here")
        there = try await Device(
            schema, tables: [declaration.name], server: server, in: directory, name: "there")
    }

    /// Both have edited the note `n`, and the app decides conflicts: what `here` wrote is on the server, and `there`
    /// meets it with its next sync.
    static func beforeConflict() async throws -> Pair {
        let pair = try await Pair(.state("note", conflict: .manual))
        try await pair.here.sql("INSERT INTO note (id, title) VALUES ('n', 'x')")
        try await Device.sync(pair.here, pair.there)
        try await pair.here.sql("UPDATE note SET title = 'a'")
        try await pair.there.sql("UPDATE note SET title = 'b'")
        try await pair.here.sync()
        return pair
    }

    /// A note that both hold.
    func share(_ values: String = "'n1', 'base', 'text', 1, NULL") async throws {
        try await here.sql("INSERT INTO note VALUES (\(values))")
        try await here.sync()
        try await there.sync()
    }

    /// The other side writes, and the server knows; this side has not heard of it.
    func changeThere(_ sql: String = "UPDATE note SET title = 'theirs'") async throws {
        try await there.sql(sql)
        try await there.sync()
    }

    /// What both show once they have told each other everything.
    func titles() async throws -> [String] {
        try await Device.sync(here, there, here, there)
        let titles = try await [here.rows("SELECT title FROM note"), there.rows("SELECT title FROM note")]
        #expect(titles[0] == titles[1])
        return titles[0].map { $0.replacing("\"", with: "") }
    }
}
