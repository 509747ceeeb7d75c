import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

/// A short story with its beginning, which nothing disturbs, and the steps during which one call fails.
///
/// Each step can be done again after it failed half-way: edits say what a row is to be, not how it is to change.
struct Scenario: Sendable, CustomStringConvertible {
    var name: String
    var cast = Cast()
    var prepare: [Step] = []
    var script: [Step]
    /// Versions of the app's schema after the first.
    var migrations: [String] = []
    /// What the end is compared by, where a migration adds to the cast's.
    var moreQueries: [String] = []
    /// Where the calls that fail begin.
    var beginning = Beginning.open
    /// Whether edits wait for the app in the end, so that not everything is sent.
    var staysPending = false

    /// What there is when calls begin to fail.
    enum Beginning: Sendable {
        /// All files are open.
        case open
        /// The files are closed: opening them is part of the story.
        case closed
        /// There are no files.
        case nothing
    }

    var description: String { name }
    var queries: [String] { cast.queries + moreQueries }
}

/// One thing that somebody does.
struct Step: Sendable {
    var name: String
    var run: @Sendable (Stage) async throws -> Void

    static func edit(_ device: String, _ sql: String) -> Step {
        Step(name: "edit \(device)") { try await $0[device].sql(sql) }
    }

    /// A sync that succeeds, or ends in the error that the story is about.
    static func sync(_ device: String, expecting code: SyncError.Code? = nil) -> Step {
        Step(name: "sync \(device)") { stage in
            do { try await stage[device].sync() } catch let error as SyncError where error.code == code {}
        }
    }

    /// A sync whose next send goes wrong.
    static func sync(_ device: String, losing loss: Wire.Loss) -> Step {
        Step(name: "sync \(device)") { stage in
            await stage[device].wire.loseNext(loss)
            do { try await stage[device].sync() } catch let error as SyncError
                where error.code == .networkUnavailable || error.code == .answerUnusable
            {}
            await stage[device].wire.loseNext(nil)
        }
    }

    /// Writes of the server's own program.
    static func commit(_ scope: Scope = "w:a", _ build: @escaping @Sendable (inout Changeset) -> Void) -> Step {
        Step(name: "commit") { try await $0.server.running().commit(to: scope, build) }
    }

    static let compact = Step(name: "compact") { try await $0.server.running().compact(trustingClock: true) }

    static func withdraw(_ scope: Scope) -> Step { Step(name: "withdraw") { await $0.board.withdraw(scope) } }
    static func grant(_ scope: Scope) -> Step { Step(name: "grant") { await $0.board.grant(scope) } }

    /// The app starts again.
    static func restart(_ device: String) -> Step {
        Step(name: "start \(device)") { try await $0[device].open() }
    }

    static let restartServer = Step(name: "start server") { try await $0.server.open() }

    /// The app's next version, with the scenario's n-th migration.
    static func upgrade(_ device: String, _ n: Int = 0) -> Step {
        Step(name: "upgrade \(device)") { stage in
            try await stage[device].migrate(to: n + 2, stage.scenario.migrations[n])
            try await stage[device].makeEngine()
        }
    }

    /// The device follows other scopes from now on.
    static func follow(_ device: String, _ scopes: [Scope]) -> Step {
        Step(name: "follow \(device)") { stage in
            stage[device].scopes = scopes
            try await stage[device].makeEngine()
        }
    }

    /// Something that an engine offers to the app.
    static func ask(
        _ device: String, _ name: String, _ work: @escaping @Sendable (SyncEngine) async throws -> Void
    ) -> Step {
        Step(name: "\(name) \(device)") { stage in
            guard let engine = stage[device].engine else { throw DiskDevice.Closed() }
            try await work(engine)
        }
    }
}
