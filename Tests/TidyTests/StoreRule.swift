import Testing

/// Each table of the client is read and written in SQL where its type is: in the room Store or, of a few, in the one
/// file that keeps it. Everybody else asks that type. Triggers and views are SQL and may name any table; few
/// files make their text.
enum StoreRule {
    static let home = "Sources/Tidemark/Store/"

    /// Tables that have another home, or a narrower one.
    private static let homes: [String: [String]] = [
        "tidemark_operation": ["Store/Outbox/"],
        "tidemark_alias": ["Store/", "Identity/Identity.swift"],
        "tidemark_renaming": ["Store/", "Identity/IDSubstitution.swift"],
        "tidemark_cascade": ["Store/", "Apply/CascadeRepair.swift"],
        "tidemark_manifest": ["Store/", "Manifest/Manifest.swift"],
        "tidemark_manifested": ["Store/", "Manifest/Manifest.swift"],
        // A second typed view of it, and a question that an observation of both tables asks.
        "tidemark_table": ["Store/", "Capture/CaptureRecord.swift", "Identity/Identity.swift"],
        // An observation, which lies below Store.
        "tidemark_counter": ["Store/", "File/Database+Reading.swift"],
    ]
    /// What makes the text of triggers, of views, and of statements that do a trigger's work.
    private static let triggers = [
        "Capture/CaptureTriggers", "Capture/TriggerGuard.swift", "Capture/RecordStateView.swift",
        "Schema/TableSchema+", "Schema/SchemaRemark.swift",
    ]

    /// The library's tables and views, by what makes them.
    static func tables(in files: [Repository.File]) -> Set<String> {
        files.filter { $0.path.hasPrefix(home) }.reduce(into: []) { names, file in
            names.formUnion(file.text.matches(of: /CREATE (?:TABLE|VIEW) (tidemark_[a-z_]+)\b/).map { String($0.1) })
        }
    }

    static func faults(path: String, text: String, tables: Set<String>) -> [Fault] {
        guard path.hasPrefix("Sources/Tidemark/") else { return [] }
        let place = path.dropFirst("Sources/Tidemark/".count)
        return SwiftText(text).lines.enumerated().flatMap { index, line -> [Fault] in
            guard !line.trimmedOfSpace().hasPrefix("//") else { return [] }
            return named(in: line, of: tables).filter { table in
                let homes = homes[table] ?? ["Store/"]
                let isTrigger = table != "tidemark_operation" && triggers.contains { place.hasPrefix($0) }
                return !isTrigger && !homes.contains { place.hasPrefix($0) }
            }.map { Fault(path: path, line: index + 1, message: "'\($0)' is named in SQL away from its type") }
        }
    }

    /// A shadow's column has the name of the table of scopes.
    private static func named(in line: String, of tables: Set<String>) -> Set<String> {
        var names = Set(line.matches(of: /\btidemark_[a-z_]+\b/).map { String($0.0) }).intersection(tables)
        if !line.contains(/(?:FROM|INTO|UPDATE|JOIN)\s+(?:main\.)?tidemark_scope\b/) { names.remove("tidemark_scope") }
        if line.contains(/\bOutbox\.table\b/) { names.insert("Outbox.table") }
        return names
    }
}

@Suite("Tables of the library where their types are")
struct StoreRuleTests {
    @Test("Nobody else names them in SQL")
    func homes() {
        let tables = StoreRule.tables(in: Repository.files)
        #expect(tables.isSuperset(of: ["tidemark_operation", "tidemark_quarantine", "tidemark_blob_file"]))
        expectNone(Repository.faults(in: ["Sources"]) { StoreRule.faults(path: $0, text: $1, tables: tables) })
    }

    @Test("A statement elsewhere is found, at its line")
    func planted() {
        func lines(_ place: String, _ text: String) -> [Int] {
            let tables: Set = ["tidemark_operation", "tidemark_orphan", "tidemark_scope", "tidemark_counter"]
            return StoreRule.faults(path: "Sources/\(place)", text: text, tables: tables).map(\.line)
        }
        let sent = "let sql =\n    \"SELECT 1 FROM tidemark_operation\"\n"
        #expect(lines("Tidemark/Apply/A.swift", sent) == [2] && lines("Tidemark/Store/A.swift", sent) == [2])
        #expect(lines("Tidemark/Store/Outbox/A.swift", sent).isEmpty && lines("TidemarkTesting/A.swift", sent).isEmpty)
        let orphan = #"try Query(db, "DELETE FROM tidemark_orphan WHERE id = ?1")"#
        #expect(lines("Tidemark/Scopes/A.swift", orphan) == [1] && lines("Tidemark/Store/A.swift", orphan).isEmpty)
        #expect(lines("Tidemark/Scopes/A.swift", "// of tidemark_orphan\n").isEmpty)
        #expect(lines("Tidemark/Scopes/A.swift", #""SELECT 1 FROM \(Outbox.table)""#) == [1])
        #expect(lines("Tidemark/Scopes/A.swift", #""SELECT name FROM tidemark_scope""#) == [1])
        #expect(lines("Tidemark/Scopes/A.swift", #""WHERE tidemark_scope = ?1""#).isEmpty)
        #expect(lines("Tidemark/Capture/CaptureTriggers.swift", #""UPDATE tidemark_counter""#).isEmpty)
        #expect(lines("Tidemark/Capture/Installation.swift", #""UPDATE tidemark_counter""#) == [1])
    }
}
