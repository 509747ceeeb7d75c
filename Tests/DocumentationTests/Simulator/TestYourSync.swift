import Foundation
import GRDB
import Testing
import Tidemark
import TidemarkServer
import TidemarkTesting

/// The code of Documentation/Testing.md, compiled and run as it stands there.
@Suite("An app developer tests their sync")
struct TestYourSync {
    /// The line's price and quantity as the device had seen them.
    private var faultyRule: EntityRule {
        // snippet: simulate-rule
        let rule = EntityRule("line") { edit in
            guard case .integer(let price)? = edit.mine["price"] ?? edit.base["price"],
                case .integer(let quantity)? = edit.mine["quantity"] ?? edit.base["quantity"]
            else { return .accept }
            return .set(["total": .integer(price * quantity)])
        }
        // end snippet
        return rule
    }

    private var mendedRule: EntityRule {
        // snippet: simulate-mended
        let mended = EntityRule("line") { edit in
            guard case .integer(let price)? = edit.proposed["price"],
                case .integer(let quantity)? = edit.proposed["quantity"]
            else { return .accept }
            return .set(["total": .integer(price * quantity)])
        }
        // end snippet
        return mended
    }

    private func play(_ rule: EntityRule, then mended: EntityRule? = nil) async throws {
        // snippet: simulate
        var invoices = SimulatedApp(
            tables: [.table("line")], scopes: ["workspace:1"],
            acts: [
                .init("add") { db, choices in
                    try db.execute(
                        sql: "INSERT OR IGNORE INTO line VALUES (?, 2, 1, 2)", arguments: ["line\(choices.pick(0..<3))"]
                    )
                },
                .init("setPrice") { db, choices in
                    try db.execute(
                        sql: "UPDATE line SET price = ?1, total = ?1 * quantity WHERE id = ?2",
                        arguments: [choices.pick(1..<9), "line\(choices.pick(0..<3))"])
                },
                .init("setQuantity") { db, choices in
                    try db.execute(
                        sql: "UPDATE line SET quantity = ?1, total = price * ?1 WHERE id = ?2",
                        arguments: [choices.pick(1..<9), "line\(choices.pick(0..<3))"])
                },
            ]
        ) { db in
            try db.execute(
                sql: "CREATE TABLE line (id TEXT PRIMARY KEY, price INTEGER, quantity INTEGER, total INTEGER)")
        }
        invoices.rules = [rule]
        invoices.finalInvariants = [
            .init("each total is the price times the quantity") { db in
                try Int.fetchOne(db, sql: "SELECT count(*) FROM line WHERE total <> price * quantity") == 0
            }
        ]
        try await Simulation(of: invoices).run(seeds: 1...200)
        // end snippet

        guard let mended else { return }
        // snippet: simulate-script
        let found = try #require(
            Simulation.Script(
                """
                world seed 1 devices 2 users 1 page 50
                0 edit add 26984
                flow
                2 edit setPrice 14755226
                1 edit setQuantity 9572135
                """))
        invoices.rules = [mended]
        try await Simulation(of: invoices).play(found)
        // end snippet

        var faulty = invoices
        faulty.rules = [faultyRule]
        let simulation = Simulation(of: faulty)
        await #expect(throws: Simulation.Failure.self) { try await simulation.play(found) }
    }

    @Test("the planted bug of a rule is found, in a script that people can read")
    func found() async throws {
        let failure = await #expect(throws: Simulation.Failure.self) { try await play(faultyRule) }
        #expect(failure?.guarantee == "invariant")
        #expect(failure.map { $0.script.count <= 6 } ?? false, "\(failure?.script.description ?? "")")
        // What the article says that one sees.
        let page = SnippetTests.root.appending(path: "Documentation/Testing.md")
        let article = try String(contentsOf: page, encoding: .utf8)
        let told = try #require(failure).description
        #expect(article.contains(told), "\(told)")
    }

    @Test("the rule that is mended passes, in the script that found the bug too")
    func mended() async throws { try await play(mendedRule, then: mendedRule) }
}
