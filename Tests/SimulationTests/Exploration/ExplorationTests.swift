import GRDB
import SampleApps
import Testing
import Tidemark
import TidemarkTesting

@Suite("All worlds of a few steps")
struct ExplorationTests {
    @Test("no guarantee is broken in any of them")
    func small() async throws {
        var exploration = try exploration(of: CardApp.app)
        exploration.stateLimit = 300
        let report = try await exploration.run()
        #expect(report.states >= 300)
        #expect(report.transitions >= report.states - 1)
        #expect(report.calms >= 1)
    }

    @Test("an exploration that is not limited comes to an end, and finds the same again")
    func whole() async throws {
        var exploration = try exploration(of: CardApp.app, edits: 1)
        exploration.workerCount = 1
        var first = try await exploration.run()
        let second = try await exploration.run()
        first.duration = second.duration
        #expect(first == second)
        #expect(first.states >= 30)
    }

    @Test("breadth first, those of one depth come before those of the next, and they are the same in the end")
    func breadth() async throws {
        var exploration = try exploration(of: CardApp.app, edits: 1)
        let whole = try await exploration.run()
        var sizes: [Int] = []
        for depth in [0, 1, 2, 1_000] {
            exploration.depthLimit = depth
            let report = try await exploration.run()
            #expect(report.depth == depth || depth == 1_000 && report.depth > 2)
            sizes.append(report.states)
        }
        #expect(sizes == sizes.sorted() && Set(sizes).count == sizes.count)
        #expect(sizes.first == 1 && sizes.last == whole.states)
    }

    /// Keys are enforced here: a client that did not carry out `ON DELETE` would let a note outlive its folder.
    @Test("a note that is put into a folder while that is deleted goes with it, whatever comes first or is lost (I4)")
    func two() async throws {
        let edits = "0 edit insert 0\nflow\n0 edit delete 0\n1 edit put 0"
        var exploration = try exploration(of: FolderApp.app, edits: 0, keys: "", beginning: edits)
        exploration.budget.losses = 1
        let report = try await exploration.run()
        #expect(report.states >= 30)
    }

    /// Each device looks before it writes, but at its own rows: two that write at the same time do not see each other.
    @Test("an invariant that only some order of edits breaks is found, and the order can be played again")
    func skew() async throws {
        var app = CardApp.app
        app.acts = [("front", "back"), ("back", "front")].map { side, other in
            .init(side) { db, choices in
                try db.execute(
                    sql: "UPDATE card SET \(side) = ? WHERE id = 1 AND \(other) IS NULL",
                    arguments: ["~\(choices.serial)"])
            }
        }
        app.acts.append(
            .init("make") { db, _ in try db.execute(sql: "INSERT INTO card VALUES (1, NULL, NULL)") })
        app.invariants = [
            .init("A card is written on one side") { db in
                try Int.fetchOne(db, sql: "SELECT count(*) FROM card WHERE front IS NOT NULL AND back IS NOT NULL") == 0
            }
        ]
        let exploration = try exploration(of: app, edits: 2, beginning: "0 edit make 0\nflow")
        let failure = await #expect(throws: Simulation.Failure.self) { try await exploration.run() }
        let found = try #require(failure)
        #expect(found.reason.contains("A card is written on one side"))
        #expect(found.script.count <= 5)
        await #expect(throws: Simulation.Failure.self) { try await Simulation(of: app).play(found.script) }
    }

    @Test("every record of every world takes the steps of its machine, whose cells are counted")
    func audited() async throws {
        let exploration = try exploration(of: CardApp.app, edits: 1)
        let (report, coverage) = try await exploration.audit()
        #expect(coverage.report == [])
        #expect(report.states >= 30 && coverage.transactions > report.transitions && coverage.unread == 0)
        #expect(coverage.cells.count > 30 && coverage.couplings.count > 1, "\(coverage.summary)")
    }

    /// - Parameter edits: that many and a wait are all that may happen; `nil`: what usually may.
    private func exploration(
        of app: SimulatedApp, edits: UInt8? = nil, keys: String = " keyless",
        beginning: String = "0 edit insert 0\nflow\nserver backup"
    ) throws -> Exploration {
        var exploration = Exploration(of: app)
        if let edits {
            exploration.budget = .none
            (exploration.budget.edits, exploration.budget.waits) = (edits, 1)
        }
        let text = "world seed 1 devices 2 users 1 page 1 windowless\(keys)\n\(beginning)"
        exploration.begin(with: try #require(Simulation.Script(text)))
        return exploration
    }
}
