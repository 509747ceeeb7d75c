import Testing

/// One word for one thing (`Documentation/Glossary.md`): a word that another one has replaced does not come back.
enum RetiredWordRule {
    struct Word {
        let retired: String
        let instead: String
        /// As part of a longer name too: `isParked`.
        var isPart = false
    }

    static let words = [
        Word(retired: "parked", instead: "quarantined", isPart: true),
        Word(retired: "culprit", instead: "blocker", isPart: true),
        Word(retired: "setAside", instead: "orphaned", isPart: true),
        Word(retired: "GivingBack", instead: "OrphanReplay", isPart: true),
        Word(retired: "redraw", instead: "rebase, overlay", isPart: true),
        Word(retired: "layOver", instead: "overlay", isPart: true),
        Word(retired: "portrait", instead: "dump", isPart: true),
        Word(retired: "rival", instead: "candidate"), Word(retired: "rivals", instead: "candidates"),
        Word(retired: "walk", instead: "scan"), Word(retired: "walks", instead: "scans"),
        Word(retired: "walking", instead: "scanning"),
        Word(retired: "tidemark_place", instead: "tidemark_routing_scope"),
        Word(retired: "tidemark_ahead", instead: "tidemark_known_version"),
        Word(retired: "tidemark_wanted", instead: "tidemark_refetch"),
        Word(retired: "tidemark_waiting", instead: "tidemark_blocked"),
        Word(retired: "tidemark_held", instead: "tidemark_blocked"),
        Word(retired: "tidemark_aside", instead: "tidemark_orphan"),
        Word(retired: "tidemark_kept", instead: "tidemark_deleted_row"),
        Word(retired: "tidemark_settle", instead: "tidemark_cascade"),
        Word(retired: "settle", instead: "resolve, repair, enforce, flush, quiesce, finish"),
        Word(retired: "settles", instead: "resolves, repairs, enforces"), Word(retired: "unsettled", instead: "open"),
        Word(retired: "TableShape", instead: "TableSchema"), Word(retired: "Layout", instead: "SyncSchema"),
        Word(retired: "Sealing", instead: "OutboxBatcher"), Word(retired: "Healing", instead: "ReplayMerge"),
        Word(retired: "Contest", instead: "UniqueResolver"), Word(retired: "Settling", instead: "CascadeRepair"),
        Word(retired: "Adoption", instead: "IDSubstitution"), Word(retired: "Surroundings", instead: "Dependencies"),
        Word(retired: "Preparation", instead: "SchemaCache"), Word(retired: "Inquiry", instead: "LossProbe"),
        Word(retired: "Narrowing", instead: "DigestBisection"), Word(retired: "OwnSums", instead: "LocalDigest"),
        Word(retired: "KeptRecords", instead: "DeletedRowCache"),
    ]

    /// Where the old words stand on purpose: this rule, the page that translates them, and old files' migration.
    static let exceptions = [
        "Tests/TidyTests/RetiredWordRule.swift", "Documentation/Glossary.md",
        "Sources/Tidemark/Store/LibrarySchema+Migration.swift", "Tests/ClientTests/Schema/LibraryMigrationTests.swift",
    ]
    static let folders = [
        "Sources/", "Tests/", "Simulator/", "Documentation/", "Examples/", "Fuzz/", "Benchmarks/",
        "Mutants/",
    ]

    static func faults(path: String, text: String) -> [Fault] {
        let isRead = folders.contains { path.hasPrefix($0) } || path.hasSuffix(".md")
        guard isRead, !exceptions.contains(path), [".swift", ".md", ".py"].contains(where: path.hasSuffix) else {
            return []
        }
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let named = words.filter { stands($0, in: name) }.map {
            Fault(path: path, line: 1, message: "'\($0.retired)' in its name is retired: \($0.instead)")
        }
        return named + faults(path: path, in: text)
    }

    private static func faults(path: String, in text: String) -> [Fault] {
        let lowered = text.lowercased()
        // Nearly every file has none of them.
        let found = words.filter { lowered.contains($0.retired.lowercased()) }
        guard !found.isEmpty else { return [] }
        return textLines(of: Array(text.utf8)).enumerated().flatMap { index, line in
            found.filter { stands($0, in: line) }.map {
                Fault(path: path, line: index + 1, message: "'\($0.retired)' is retired: \($0.instead)")
            }
        }
    }

    /// Names of types are told from prose by their case; words of prose are not.
    private static func stands(_ word: Word, in line: String) -> Bool {
        let isType = word.retired.first?.isUppercase == true
        if word.isPart { return line.lowercased().contains(word.retired.lowercased()) }
        return line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.contains {
            isType ? $0 == word.retired : $0.lowercased() == word.retired
        }
    }
}

@Suite("Retired words")
struct RetiredWordRuleTests {
    @Test("No word that another one has replaced stands in code, tests or documents")
    func none() { expectNone(Repository.files.flatMap { RetiredWordRule.faults(path: $0.path, text: $0.text) }) }

    @Test(
        "A retired word is found, by itself or in a name",
        arguments: ["let isParked = true", "// the culprit", "struct Sealing {", "the next Walk", "FROM tidemark_held"])
    func planted(line: String) {
        #expect(RetiredWordRule.faults(path: "Sources/Tidemark/Store/A.swift", text: line).count == 1)
    }

    @Test(
        "A retired word is found in a file's name", arguments: ["Mutants/Healing.swift", "Tests/A/StorePortrait.swift"])
    func named(path: String) { #expect(RetiredWordRule.faults(path: path, text: "").count == 1) }

    @Test(
        "Words that only look alike pass",
        arguments: ["arrival", "a walkthrough", "// sealing the batch", "MemoryLayout<Int>", "settling for less"])
    func clean(line: String) {
        #expect(RetiredWordRule.faults(path: "Sources/Tidemark/Store/A.swift", text: line).isEmpty)
    }

    @Test("The glossary names every retired word's successor")
    func glossary() throws {
        let glossary = try #require(Repository.files.first { $0.path == "Documentation/Glossary.md" })
        for word in RetiredWordRule.words {
            #expect(glossary.text.contains(word.retired), "\(word.retired) is not in the glossary")
        }
    }
}
