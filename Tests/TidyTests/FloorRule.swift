import Testing

/// The client's rooms, from the lowest to the highest: a file names types of its own room and of those below it only.
enum FloorRule {
    static let target = "Sources/Tidemark/"
    static let rooms = [
        "Runtime", "Reports", "SQL", "Schema", "File", "Store", "Manifest", "Capture", "Transport", "Identity", "Push",
        "Apply", "Scopes", "Snapshot", "Status", "Exchange", "Verify", "Attachments",
        "Engine",
    ]

    private static let kinds: Set = ["struct", "class", "enum", "actor", "protocol", "typealias"]

    /// The room of a file; `nil` where it lies in none.
    static func room(of path: String) -> Int? {
        guard path.hasPrefix(target), path.hasSuffix(".swift") else { return nil }
        return rooms.firstIndex(of: String(path.dropFirst(target.count).prefix { $0 != "/" }))
    }

    static func faults(files: [Repository.File]) -> [Fault] {
        let files = files.filter { $0.path.hasPrefix(target) && $0.path.hasSuffix(".swift") }
        let strangers = files.filter { room(of: $0.path) == nil }
            .map { Fault(path: $0.path, line: 1, message: "lies in none of the client's rooms") }
        let texts = files.map { (path: $0.path, tokens: SwiftText($0.text).tokens) }
        var homes: [String: Set<String>] = [:]
        for (path, tokens) in texts {
            for name in declared(in: tokens, atTop: true) { homes[name, default: []].insert(path) }
        }
        return strangers + texts.flatMap { faults(path: $0.path, tokens: $0.tokens, homes: homes) }
    }

    /// A nested type of the same name hides the one of another file.
    private static func faults(path: String, tokens: [SwiftText.Token], homes: [String: Set<String>]) -> [Fault] {
        guard let own = room(of: path) else { return [] }
        let hidden = declared(in: tokens, atTop: false)
        var told: Set<String> = []
        return tokens.indices.compactMap { index in
            let name = tokens[index].text
            guard !hidden.contains(name), index == 0 || tokens[index - 1].text != ".",
                let homes = homes[name], homes.count == 1, let home = homes.first, let other = room(of: home),
                other > own, told.insert(name).inserted
            else { return nil }
            return Fault(
                path: path, line: tokens[index].line, message: "'\(name)' lies above, in \(rooms[other])")
        }
    }

    private static func declared(in tokens: [SwiftText.Token], atTop: Bool) -> Set<String> {
        var names: Set<String> = []
        var depth = 0
        for (index, token) in tokens.enumerated() {
            switch token.text {
            case "{": depth += 1
            case "}": depth -= 1
            case _ where kinds.contains(token.text) && index + 1 < tokens.count && (!atTop || depth == 0):
                names.insert(tokens[index + 1].text)
            default: break
            }
        }
        return names
    }
}

@Suite("The client's rooms")
struct FloorRuleTests {
    @Test("A file names types of its own room and of those below")
    func floors() { expectNone(FloorRule.faults(files: Repository.files)) }

    @Test("Each room has files")
    func rooms() {
        let used = Set(Repository.files.compactMap { FloorRule.room(of: $0.path) })
        #expect(used == Set(FloorRule.rooms.indices))
    }

    @Test("A type that lies above is found, also in an extension of it; a nested one of the same name is no such")
    func planted() {
        func faults(_ text: String) -> [Int] {
            let files = [
                Repository.File(path: "Sources/Tidemark/Engine/SyncEngine.swift", text: "final class SyncEngine {}\n"),
                Repository.File(path: "Sources/Tidemark/Store/A.swift", text: text),
            ]
            return FloorRule.faults(files: files).map(\.line)
        }
        #expect(faults("struct A {\n    let engine: SyncEngine\n}\n") == [2])
        #expect(faults("struct A {}\nextension SyncEngine {}\n") == [2])
        #expect(faults("struct A { enum SyncEngine {} }\nlet a: A.SyncEngine // SyncEngine\n").isEmpty)
    }

    @Test("A file in no room is found")
    func loose() {
        let files = ["Sources/Tidemark/A.swift", "Sources/Tidemark/Attic/A.swift"].map {
            Repository.File(path: $0, text: "")
        }
        #expect(FloorRule.faults(files: files).count == 2)
    }
}
