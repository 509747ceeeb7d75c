import Foundation
import Testing

@Suite("The code in the documents is the code that was compiled")
struct SnippetTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    static let root = folder.deletingLastPathComponent().deletingLastPathComponent()

    @Test(
        "Each snippet stands in its document word for word",
        arguments: [
            ("client", "Apps/ClientQuickStart.swift", "README.md"),
            ("server", "Servers/ServerQuickStart.swift", "README.md"),
            ("commit", "Servers/ServerQuickStart.swift", "README.md"),
            ("ids-client", "Apps/Guides.swift", "Documentation/Ids.md"),
            ("ids-server", "Apps/Guides.swift", "Documentation/Ids.md"),
            ("ids-canonical", "Apps/Guides.swift", "Documentation/Ids.md"),
            ("changesets", "Apps/Guides.swift", "Documentation/Schema.md"),
            ("life", "Apps/Guides.swift", "Documentation/AppLife.md"),
            ("life-wake", "Apps/Guides.swift", "Documentation/AppLife.md"),
            ("life-granted", "Apps/Guides.swift", "Documentation/AppLife.md"),
            ("life-refresh", "Apps/Guides.swift", "Documentation/AppLife.md"),
            ("progress", "Apps/Guides.swift", "Documentation/AppLife.md"),
            ("nudges-off", "Apps/NudgeSnippets.swift", "Documentation/Nudges.md"),
            ("fleet", "Servers/FleetSnippets.swift", "Documentation/Fleet.md"),
            ("remedies", "Servers/FleetSnippets.swift", "Documentation/Fleet.md"),
            ("nudges-transport", "Apps/NudgeSnippets.swift", "Documentation/Nudges.md"),
            ("hook-closure", "Servers/HookSnippets.swift", "Documentation/Webhooks.md"),
            (
                "webhook-verify", "../../Examples/hello-server/Sources/Push/WebhookSignature.swift",
                "Documentation/Webhooks.md"
            ),
            (
                "webhook-apns", "../../Examples/hello-server/Sources/Push/BackgroundPush.swift",
                "Documentation/Webhooks.md"
            ),
            ("suspension", "Apps/AppSnippets.swift", "Documentation/AppLife.md"),
            ("extension", "Apps/AppSnippets.swift", "Documentation/AppLife.md"),
            ("observation", "Apps/AppSnippets.swift", "Documentation/AppLife.md"),
            ("swiftui", "../../Examples/field-notes/Sources/FieldNotes/Views.swift", "Documentation/Showing.md"),
            ("rows-with-state", "Apps/ShowingSnippets.swift", "Documentation/Showing.md"),
            ("rows-observed", "Apps/ShowingSnippets.swift", "Documentation/Showing.md"),
            ("conflict-list", "Apps/ShowingSnippets.swift", "Documentation/Showing.md"),
            ("measures", "Apps/ShowingSnippets.swift", "Documentation/Showing.md"),
            ("attachments-engine", "Apps/AttachmentSnippets.swift", "Documentation/Attachments.md"),
            ("attachments-add", "Apps/AttachmentSnippets.swift", "Documentation/Attachments.md"),
            ("attachments-show", "Apps/AttachmentSnippets.swift", "Documentation/Attachments.md"),
            ("attachments-list", "Apps/AttachmentSnippets.swift", "Documentation/Attachments.md"),
            ("uuid-key", "Apps/AppSnippets.swift", "Documentation/Ids.md"),
            ("rebuild", "Apps/AppSnippets.swift", "Documentation/Schema.md"),
            ("sign-out", "Apps/Guides.swift", "Documentation/Scopes.md"),
            ("hold", "Apps/Guides.swift", "Documentation/Scopes.md"),
            ("subscopes", "Apps/Guides.swift", "Documentation/Subscopes.md"),
            ("conflicts", "Apps/ConflictSnippets.swift", "Documentation/Conflicts.md"),
            ("rules", "Apps/ConflictSnippets.swift", "Documentation/Conflicts.md"),
            ("objects", "Apps/ObjectSnippets.swift", "Documentation/Objects.md"),
            ("objects-read", "Apps/ObjectSnippets.swift", "Documentation/Objects.md"),
            ("objects-then", "Apps/ObjectSnippets.swift", "Documentation/Objects.md"),
            ("stamped", "Apps/ObjectSnippets.swift", "Documentation/Objects.md"),
            ("simulate-rule", "Simulator/TestYourSync.swift", "Documentation/Testing.md"),
            ("simulate", "Simulator/TestYourSync.swift", "Documentation/Testing.md"),
            ("simulate-mended", "Simulator/TestYourSync.swift", "Documentation/Testing.md"),
            ("simulate-script", "Simulator/TestYourSync.swift", "Documentation/Testing.md"),
        ])
    func snippet(name: String, file: String, page: String) throws {
        let document = try String(contentsOf: Self.root.appending(path: page), encoding: .utf8)
        let source = try String(contentsOf: Self.folder.appending(path: file), encoding: .utf8)
        let compiled = try #require(Snippet.compiled(name, in: source))
        let shown = try #require(Snippet.shown(name, in: document))
        #expect(shown == compiled)
    }

    @Test("A README with one letter changed is noticed")
    func plantedFault() throws {
        let source = "    // snippet: a\n    let x = 1\n\n      f(x)\n    // end snippet\n"
        let good = "<!-- snippet: a -->\n```swift\nlet x = 1\n\n  f(x)\n```\n"
        #expect(Snippet.shown("a", in: good) == Snippet.compiled("a", in: source))
        let bad = good.replacing("f(x)", with: "f(y)")
        #expect(Snippet.shown("a", in: bad) != Snippet.compiled("a", in: source))
        #expect(Snippet.shown("b", in: good) == nil)
    }
}

/// Finds a snippet in a document and in a source file, and takes its indentation off.
enum Snippet {
    static func shown(_ name: String, in document: String) -> [String]? {
        lines(of: document, from: "<!-- snippet: \(name) -->", to: "```").map { Array($0.dropFirst()) }
    }

    static func compiled(_ name: String, in source: String) -> [String]? {
        guard let lines = lines(of: source, from: "// snippet: \(name)", to: "// end snippet") else { return nil }
        let margin = lines.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        return lines.map { String($0.dropFirst(margin)) }
    }

    private static func lines(of text: String, from first: String, to last: String) -> [String]? {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard let start = lines.firstIndex(where: { $0.trimmingCharacters(in: .whitespaces) == first }) else {
            return nil
        }
        let rest = lines[(start + 1)...]
        guard let end = rest.dropFirst().firstIndex(where: { $0.trimmingCharacters(in: .whitespaces) == last })
        else { return nil }
        return Array(rest[..<end])
    }
}
