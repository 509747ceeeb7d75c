import Testing

/// One word for one thing (`Documentation/Glossary.md`): a word that another one has replaced does not come back, be it
/// by itself, in a name that is made of it, or in a phrase.
enum RetiredWordRule {
    struct Word {
        let retired: String
        let instead: String
        var reach = Reach.part
        /// A text in which the word is another one: a product's name, an attribute of a library.
        var except: String?
        /// Elsewhere the word has its everyday meaning.
        var isSwiftOnly = false
    }

    enum Reach {
        /// A part of a name, or more of them in a row, and the word by itself, in any case: `isSettled`, `giveBack`.
        case part
        /// Any text that holds it: `unparked`.
        case text
        /// A name of just this spelling, as types have one: prose may use the word.
        case type
        /// A type that is declared so: a sentence may begin with the word.
        case declaration
    }

    /// Words that together say what one word says: `gives it back`.
    struct Phrase {
        let retired: String
        let instead: String
        let verbs: Set<String>
        let particle: String
        /// The words that may stand between verb and particle.
        var gap = 2
    }

    static let words = [
        Word(retired: "parked", instead: "quarantined", reach: .text),
        Word(retired: "culprit", instead: "blocker", reach: .text),
        Word(retired: "redraw", instead: "rebase, overlay", reach: .text),
        Word(retired: "portrait", instead: "dump", reach: .text),
        Word(retired: "aside", instead: "orphaned, quarantined, rejected"),
        Word(retired: "giveBack", instead: "replay"), Word(retired: "givesBack", instead: "replays"),
        Word(retired: "givenBack", instead: "replayed"), Word(retired: "givingBack", instead: "replaying"),
        Word(retired: "bringBack", instead: "replay"), Word(retired: "bringsBack", instead: "replays"),
        Word(retired: "bringingBack", instead: "replaying"), Word(retired: "broughtBack", instead: "replayed"),
        Word(retired: "layOver", instead: "overlay"), Word(retired: "laidOver", instead: "overlaid"),
        Word(retired: "takeCaptured", instead: "drainCapture"), Word(retired: "adoptIDs", instead: "substituteIDs"),
        Word(retired: "wantWhere", instead: "queueForRefetch"), Word(retired: "noteWanted", instead: "noteIntended"),
        Word(retired: "rival", instead: "candidate"), Word(retired: "rivals", instead: "candidates"),
        Word(retired: "contest", instead: "UniqueResolver"), Word(retired: "contests", instead: "unique values"),
        Word(retired: "walk", instead: "scan"), Word(retired: "walks", instead: "scans"),
        Word(retired: "walking", instead: "scanning"),
        Word(retired: "heal", instead: "recover, replay, repair"), Word(retired: "heals", instead: "recovers"),
        Word(retired: "healed", instead: "recovered, replayed, repaired"),
        Word(retired: "healing", instead: "ReplayMerge, recovering"),
        Word(retired: "narrowing", instead: "DigestBisection"),
        Word(retired: "settle", instead: "resolve, repair, enforce, flush, quiesce, finish"),
        Word(retired: "settles", instead: "resolves, repairs, enforces"),
        Word(retired: "settled", instead: "confirmed, resolved, repaired"),
        Word(retired: "unsettled", instead: "open"),
        Word(retired: "tidemark_place", instead: "tidemark_routing_scope"),
        Word(retired: "tidemark_ahead", instead: "tidemark_known_version"),
        Word(retired: "tidemark_wanted", instead: "tidemark_refetch"),
        Word(retired: "tidemark_waiting", instead: "tidemark_blocked"),
        Word(retired: "tidemark_held", instead: "tidemark_blocked"),
        Word(retired: "tidemark_kept", instead: "tidemark_deleted_row"),
        Word(retired: "TableShape", instead: "TableSchema", reach: .type),
        Word(retired: "Layout", instead: "SyncSchema", reach: .type),
        Word(retired: "Sealing", instead: "OutboxBatcher", reach: .type),
        Word(retired: "Settling", instead: "CascadeRepair", reach: .type),
        Word(retired: "Adoption", instead: "IDSubstitution", reach: .type),
        Word(retired: "Surroundings", instead: "Dependencies", reach: .type),
        Word(retired: "Preparation", instead: "SchemaCache", reach: .type),
        Word(retired: "Inquiry", instead: "LossProbe", reach: .type),
        Word(retired: "OwnSums", instead: "LocalDigest", reach: .type),
        Word(retired: "KeptRecords", instead: "DeletedRowCache", reach: .type),
        Word(retired: "NamedAnew", instead: "id reassignment", reach: .type),
        Word(retired: "Spreading", instead: "NoteExpansion", reach: .type),
        Word(retired: "TakingCaptured", instead: "CaptureDrain", reach: .type),
        Word(retired: "Atlas", instead: "StateGraph", reach: .type, except: "Atlas Device Sync"),
        Word(retired: "Flag", instead: "CaptureSuppression", reach: .type, except: "@Flag"),
        Word(retired: "Ahead", instead: "KnownVersions", reach: .declaration),
        Word(retired: "Edits", instead: "LocalDelta", reach: .declaration),
        Word(retired: "Held", instead: "BlockedEdits", reach: .declaration),
        Word(retired: "Kept", instead: "DeletedRowCache", reach: .declaration),
        Word(retired: "Pin", instead: "SnapshotHandle", reach: .type),
        Word(retired: "pendingSince", instead: "oldestEdit"),
        Word(retired: "pinnedPage", instead: "a page of a snapshot handle"),
        Word(retired: "truth", instead: "server row", isSwiftOnly: true),
    ]

    private static let declaring: Set = ["actor", "class", "enum", "protocol", "struct", "typealias"]
    private static let drawing: Set = ["draw", "draws", "drew", "drawn", "drawing"]

    static let phrases = [
        Phrase(
            retired: "give back", instead: "replay, return, release",
            verbs: ["give", "gives", "gave", "given", "giving"], particle: "back"),
        Phrase(
            retired: "bring back", instead: "replay, revive, fetch", verbs: ["bring", "brings", "brought", "bringing"],
            particle: "back", gap: 3),
        Phrase(
            retired: "lay over", instead: "overlay", verbs: ["lay", "lays", "laid", "laying", "lie", "lies"],
            particle: "over"),
        Phrase(retired: "draw over", instead: "overlay, rebase", verbs: drawing, particle: "over"),
        Phrase(retired: "draw again", instead: "rebase", verbs: drawing, particle: "again"),
        Phrase(retired: "pinned page", instead: "page of a snapshot", verbs: ["pinned"], particle: "page", gap: 0),
        Phrase(retired: "pinned scan", instead: "scan up to a horizon", verbs: ["pinned"], particle: "scan", gap: 0),
    ]

    /// How the words may be spelled in lower case: the parts of a name in one, and with underscores.
    private static let spelled = words.map { word in
        (word: word, spellings: Set([word.retired.lowercased(), parts(of: word.retired).joined(separator: "_")]))
    }

    /// Retired words that the wire goes on using, and so whoever quotes it: in quotes or backticks they pass.
    static let wireWords = [
        (word: "settled", because: "it is a verdict's status (Documentation/Protocol.md), which old devices know")
    ]

    /// Where the old words stand on purpose: this rule, the page that translates them, the one that tells users what
    /// was renamed, and old files' migration.
    static let exceptions = [
        "Tests/TidyTests/Words/RetiredWordRule.swift", "Documentation/Glossary.md", "CHANGELOG.md",
        "Sources/Tidemark/Store/LibrarySchema+Migration.swift", "Tests/ClientTests/Schema/LibraryMigrationTests.swift",
        // The wire's words, as a fuzzer reads them.
        "Fuzz/Dictionary.txt",
    ]
    static let folders = [
        "Sources/", "Tests/", "Simulator/", "Documentation/", "Examples/", "Fuzz/", "Benchmarks/",
        "Mutants/",
    ]
    private static let endings = [".swift", ".md", ".py", ".txt", ".c", ".h"]

    static func faults(path: String, text: String) -> [Fault] {
        let isInside = folders.contains { path.hasPrefix($0) } && endings.contains(where: path.hasSuffix)
        let isRead = isInside || path.hasPrefix("Scripts/") || path.hasSuffix(".md") || path == "Makefile"
        guard isRead, !exceptions.contains(path) else { return [] }
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let nameWords = tokens(of: name)
        let named = words.filter { stands($0, in: name, nameWords) }.map {
            Fault(path: path, line: 1, message: "'\($0.retired)' in its name is retired: \($0.instead)")
        }
        return named + faults(path: path, in: text)
    }

    private static func faults(path: String, in text: String) -> [Fault] {
        let lowered = text.lowercased()
        // Nearly every file has none of them.
        let found = spelled.filter { $0.spellings.contains { lowered.contains($0) } }.map(\.word)
            .filter { !$0.isSwiftOnly || path.hasSuffix(".swift") }
        let said = phrases.filter { lowered.contains($0.particle) }
        guard !found.isEmpty || !said.isEmpty else { return [] }
        var perLine: [[String]] = []
        var faults: [Fault] = []
        for (index, line) in textLines(of: Array(text.utf8)).enumerated() {
            let names = tokens(of: line)
            perLine.append(names)
            faults += found.filter { stands($0, in: line, names) }.map {
                Fault(path: path, line: index + 1, message: "'\($0.retired)' is retired: \($0.instead)")
            }
        }
        return faults + said.flatMap { self.faults(path: path, of: $0, in: perLine) }
    }

    /// A phrase may begin on one line and end on the next.
    private static func faults(path: String, of phrase: Phrase, in lines: [[String]]) -> [Fault] {
        var faults: [Fault] = []
        // The words since the last verb; `nil` where it is too far behind.
        var distance: Int?
        for (index, line) in lines.enumerated() {
            for name in line {
                let word = name.lowercased()
                if phrase.verbs.contains(word) {
                    distance = 0
                } else if let between = distance {
                    if word == phrase.particle {
                        let message = "'\(phrase.retired)' is retired: \(phrase.instead)"
                        faults.append(Fault(path: path, line: index + 1, message: message))
                    }
                    distance = word == phrase.particle || between == phrase.gap ? nil : between + 1
                }
            }
        }
        return faults
    }

    private static func stands(_ word: Word, in line: String, _ names: [String]) -> Bool {
        if let other = word.except, line.contains(other) {
            let rest = line.replacing(other, with: "")
            var same = word
            same.except = nil
            return stands(same, in: rest, tokens(of: rest))
        }
        switch word.reach {
        case .text: return line.lowercased().contains(word.retired.lowercased())
        case .type: return names.contains(word.retired)
        case .declaration:
            return zip(names, names.dropFirst()).contains { declaring.contains($0) && $1 == word.retired }
        case .part:
            let run = parts(of: word.retired)
            var names = names
            if wireWords.contains(where: { $0.word == word.retired }) {
                let unquoted = ["`", "\"", "'"].reduce(line) { $0.replacing($1 + word.retired + $1, with: "") }
                names = tokens(of: unquoted)
            }
            return names.contains { name in
                let own = parts(of: name)
                guard own.count >= run.count else { return false }
                return (0...(own.count - run.count)).contains { own[$0...].starts(with: run) }
            }
        }
    }

    /// The names and words of a line; an underscore belongs to its name.
    private static func tokens(of line: String) -> [String] {
        line.utf8.split { !$0.isNameByte }.map { String(decoding: $0, as: UTF8.self) }
    }

    /// The words that a name is made of, in lower case: `isGivenBack`, `given_back`.
    private static func parts(of name: String) -> [String] {
        var parts: [[UInt8]] = [[]]
        let bytes = Array(name.utf8)
        for (index, byte) in bytes.enumerated() {
            let isCapital = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            let isBehindSmall = index > 0 && (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(bytes[index - 1])
            if byte == .underscore || isCapital && isBehindSmall { parts.append([]) }
            if byte != .underscore { parts[parts.count - 1].append(isCapital ? byte | 0x20 : byte) }
        }
        return parts.filter { !$0.isEmpty }.map { String(decoding: $0, as: UTF8.self) }
    }
}

@Suite("Retired words")
struct RetiredWordRuleTests {
    @Test("No word that another one has replaced stands in code, tests or documents")
    func none() { expectNone(Repository.files.flatMap { RetiredWordRule.faults(path: $0.path, text: $0.text) }) }

    @Test(
        "A retired word is found, by itself or in a name",
        arguments: [
            "let isParked = true", "// the culprit", "struct Sealing {", "the next Walk", "FROM tidemark_held",
            "try await engine.giveBack(edit)", "def given_back(self):", "if report.isSettled {", "counts.unSettled",
            "try server.takeCaptured()", "private struct HealedRecord {", "// It is settled by then.", "noteAside(db)",
            "struct SetAside {", "enum NamedAnew {", "enum Spreading {", "let atlas = Atlas()", "let serverTruth = row",
            "@Flag var isDry = Flag()", "func aPinnedPageIsKept() {", "struct TakingCaptured {", "if let pin: Pin {",
            "private struct Held {", "typealias Edits = LocalDelta",
        ])
    func planted(line: String) {
        #expect(RetiredWordRule.faults(path: "Sources/Tidemark/Store/A.swift", text: line).count == 1)
    }

    @Test(
        "A retired phrase is found, also across two lines",
        arguments: [
            "// The edits are given back.", "// It gives them all back.", "/// What a device brings back\n/// counts.",
            "// edits that are laid\n    // over the row", "row is set aside",
            "// The edits are drawn\n// over the row.", "// It draws them again.", "// The edit brings it back.",
            "// It brought the whole record\n// back.", "a pinned page is the same for ever", "the pinned scan",
        ])
    func plantedPhrase(text: String) {
        #expect(RetiredWordRule.faults(path: "Sources/Tidemark/Store/A.swift", text: text).count == 1)
    }

    @Test("A word of the wire passes where it is quoted, and nowhere else")
    func wire() {
        let path = "Documentation/A.md"
        for word in RetiredWordRule.wireWords.map(\.word) {
            #expect(RetiredWordRule.faults(path: path, text: "a repeat is `\(word)`; \"\(word)\", '\(word)'").isEmpty)
            #expect(RetiredWordRule.faults(path: path, text: "a repeat is `\(word)`, and \(word)").count == 1)
        }
    }

    @Test("A word that is retired in Swift alone passes in a document")
    func swiftOnly() {
        let text = "Move the truth to the log."
        #expect(RetiredWordRule.faults(path: "Documentation/A.md", text: text).isEmpty)
        #expect(RetiredWordRule.faults(path: "Sources/Tidemark/A.swift", text: text).count == 1)
    }

    @Test(
        "A retired word is found in a file's name", arguments: ["Mutants/Healing.swift", "Tests/A/StorePortrait.swift"])
    func named(path: String) { #expect(RetiredWordRule.faults(path: path, text: "").count == 1) }

    @Test(
        "Words that only look alike pass",
        arguments: [
            "arrival", "a walkthrough", "// sealing the batch", "MemoryLayout<Int>", "settling for less", "health",
            "// It gives way; the other comes back.", "givesWay(back)", "isLaid", "layers over it",
            "@Flag(help: \"Do it.\") var confirm = false", "From Atlas Device Sync", "isPinned", "drawn from a seed",
            "// Edits of a record leave in order.", "struct EditsOfScope {",
        ])
    func clean(line: String) {
        #expect(RetiredWordRule.faults(path: "Sources/Tidemark/Store/A.swift", text: line).isEmpty)
    }

    @Test("The glossary names every retired word's successor")
    func glossary() throws {
        let glossary = try #require(Repository.files.first { $0.path == "Documentation/Glossary.md" })
        for retired in RetiredWordRule.words.map(\.retired) + RetiredWordRule.phrases.map(\.retired) {
            #expect(glossary.text.contains(retired), "\(retired) is not in the glossary")
        }
    }
}
