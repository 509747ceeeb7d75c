import Foundation

@testable import TidemarkCore

/// The tables and diagrams of `Documentation/Machines.md`, made from the machine and from its comments.
enum RecordMachineDocument {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    static let page = root.appending(path: "Documentation/Machines.md")
    static let begin = "<!-- Made from the code: begin -->\n"
    static let end = "<!-- Made from the code: end -->\n"

    /// What the page says between its two marks.
    static func part(of text: String) -> Substring? {
        guard let first = text.range(of: begin), let last = text.range(of: end) else { return nil }
        return text[first.upperBound..<last.lowerBound]
    }

    static func made() throws -> String {
        let comments = try Comments()
        return """

            ## Events

            | event | what happened |
            |---|---|
            \(events(comments))

            ## Effects

            | effect | what the client does |
            |---|---|
            \(effects(comments))

            ## Regions

            \(region("Base", "base", RecordMachine.Base.self, comments))
            \(region("Local", "local", RecordMachine.Local.self, comments))
            \(region("Queue", "queue", RecordMachine.Queue.self, comments))
            \(region("InFlight", "in flight", RecordMachine.InFlight.self, comments))
            \(region("Place", "place", RecordMachine.Place.self, comments))
            \(region("Block", "block", RecordMachine.Block.self, comments))
            \(region("Decision", "decision", RecordMachine.Decision.self, comments))
            \(region("Identity", "identity", RecordMachine.Identity.self, comments))
            \(region("Knowledge", "knowledge", RecordMachine.Knowledge.self, comments))
            \(region("Access", "access", RecordMachine.Access.self, comments))
            \(region("Orphan", "orphan", RecordMachine.Orphan.self, comments))
            \(region("Capture", "capture", RecordMachine.Capture.self, comments))
            ## Couplings

            | number | name | what holds |
            |---|---|---|
            \(couplings(comments))


            """
    }

    private static func events(_ comments: Comments) -> String {
        var seen: Set<String> = []
        let names = RecordMachine.Event.allCases.map(kind).filter { seen.insert($0).inserted }
        return names.map { "| \($0) | \(comments["Event", $0]) |" }.joined(separator: "\n")
    }

    private static func effects(_ comments: Comments) -> String {
        RecordMachine.Effect.allCases.map { "| \($0) | \(comments["Effect", "\($0)"]) |" }.joined(separator: "\n")
    }

    private static func couplings(_ comments: Comments) -> String {
        RecordMachine.Coupling.allCases.map { "| \($0.number) | \($0) | \(comments["Coupling", "\($0)"]) |" }
            .joined(separator: "\n")
    }

    /// An event without what it carries.
    private static func kind(_ event: RecordMachine.Event) -> String {
        String("\(event)".prefix { $0 != "(" })
    }

    private static func region<Region: RecordRegion>(
        _ type: String, _ name: String, _: Region.Type, _ comments: Comments
    ) -> String {
        let states = Array(Region.allCases)
        let meanings = states.map { "- **\($0)** \(comments[type, "\($0)"])" }.joined(separator: "\n")
        // Events that mean the same share a row.
        var rows: [(events: [String], cells: [String])] = []
        for event in RecordMachine.Event.allCases {
            let cells = states.map { text(RecordCell.cell(name, $0, event)) }
            guard cells.contains(where: { !$0.isEmpty }) else { continue }
            if let same = rows.firstIndex(where: { $0.cells == cells }) {
                rows[same].events.append(event.text)
            } else {
                rows.append(([event.text], cells))
            }
        }
        let table = rows.map { "| \($0.events.joined(separator: "; ")) | \($0.cells.joined(separator: " | ")) |" }
        return """
            ### \(name)

            \(comments[type, ""])

            \(meanings)

            \(diagram(name, states))

            | event | \(states.map { "\($0)" }.joined(separator: " | ")) |
            |---|\(states.map { _ in "---|" }.joined())
            \(table.joined(separator: "\n"))

            """
    }

    private static func text(_ cell: RecordCell?) -> String {
        guard let cell else { return "" }
        let next = cell.next == cell.state ? "stays" : cell.next
        return cell.effects.isEmpty ? next : "\(next): \(cell.effects.map { "\($0)" }.joined(separator: ", "))"
    }

    private static func diagram<Region: RecordRegion>(_ name: String, _ states: [Region]) -> String {
        var edges: [String] = []
        for state in states {
            for next in states where next != state {
                let events = RecordMachine.Event.allCases.filter { state.next($0).0 == next }.map(kind)
                guard !events.isEmpty else { continue }
                let label = events.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }.joined(separator: ", ")
                edges.append("    \(state) --> \(next): \(label)")
            }
        }
        return (["```mermaid", "stateDiagram-v2"] + edges + ["```"]).joined(separator: "\n")
    }
}

/// The doc comments of the machine's types and of their cases, read from its sources.
struct Comments {
    private var texts: [String: String] = [:]

    init() throws {
        let folder = RecordMachineDocument.root.appending(path: "Sources/TidemarkCore/Records")
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            read(try String(contentsOf: file, encoding: .utf8))
        }
    }

    /// A case's comment, or that of the type itself where no case is named.
    subscript(type: String, name: String) -> String { texts["\(type).\(name)"] ?? "" }

    private mutating func read(_ source: String) {
        var type = ""
        var comment: [Substring] = []
        for line in source.split(separator: "\n", omittingEmptySubsequences: false).map({ $0.drop { $0 == " " } }) {
            if line.hasPrefix("///") {
                comment.append(line.dropFirst(3).drop { $0 == " " })
                continue
            }
            if let match = line.prefixMatch(of: /(package )?enum (\w+)/) {
                type = String(match.2)
                note(type, "", comment)
            } else if let match = line.prefixMatch(of: /case (\w+(\([^)]*\))?(, \w+(\([^)]*\))?)*)( = \d+)?$/) {
                for name in match.1.split(separator: ",") {
                    note(type, String(name.prefix { $0 != "(" }).trimmingCharacters(in: .whitespaces), comment)
                }
            }
            comment = []
        }
    }

    private mutating func note(_ type: String, _ name: String, _ comment: [Substring]) {
        guard !comment.isEmpty else { return }
        // The first paragraph, on one line.
        let paragraph = comment.prefix { !$0.isEmpty }.joined(separator: " ")
        texts["\(type).\(name)"] = paragraph.replacing("``", with: "`")
    }
}
