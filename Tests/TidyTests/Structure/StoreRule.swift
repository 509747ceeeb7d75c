import Testing

/// Each table of the client is read and written in SQL where its type is, and one file makes it. Everybody else asks
/// that type, the command too. Statements over several tables, triggers and views are listed with the tables that they
/// name.
struct StoreRule {
    static let target = "Sources/Tidemark/"
    /// The client's floors: the command opens devices' files.
    static let targets = [target, "Sources/TidemarkCommand/"]
    static let home = target + "Store/"
    /// A shadow goes with each of the app's tables, and so does a table that notes rows of a guarded one: their names
    /// are made of the app's.
    static let shadow = "tidemark_shadow_"

    /// The library's tables and views, by what makes them.
    let tables: Set<String>
    /// Constants that hold a table's name, with the name of their type.
    let aliases: [String: String]

    init(files: [Repository.File]) {
        let store = files.filter { $0.path.hasPrefix(Self.home) }
        let tables: Set<String> = store.reduce(into: []) { names, file in
            names.formUnion(file.text.matches(of: /CREATE (?:TABLE|VIEW) (tidemark_[a-z_]+)\b/).map { String($0.1) })
        }
        self.tables = tables
        aliases = store.reduce(into: [:]) { aliases, file in
            let type = (file.path.split(separator: "/").last ?? "").prefix { $0 != "." && $0 != "+" }
            for match in file.text.matches(of: /static let (\w+)(?:: String)? = "(tidemark_[a-z_]+)"/)
            where tables.contains(String(match.2)) {
                aliases["\(type).\(match.1)"] = String(match.2)
            }
        }
    }

    func faults(path: String, text: String) -> [Fault] {
        guard Self.targets.contains(where: path.hasPrefix) else { return [] }
        // Homes and exceptions are of the client: to the command's files, none applies.
        let place = path.hasPrefix(Self.target) ? Self.place(of: path) : path
        return uses(in: text).flatMap { use -> [Fault] in
            var messages = use.tables.filter { !Self.mayName($0, at: place) }.sorted()
                .map { "'\($0)' is named in SQL away from its type" }
            if use.isMaking, !Self.lies(place, in: Self.schema) {
                messages.append("a table or an index of the library's is made away from LibrarySchema")
            }
            if use.isNamingState { messages.append("a state of an operation is spelled away from Outbox.State") }
            return messages.map { Fault(path: path, line: use.line, message: $0) }
        }
    }

    /// A file's path within the client.
    static func place(of path: String) -> String { String(path.dropFirst(target.count)) }

    /// What a line of code names and makes.
    struct Use {
        let line: Int
        let tables: Set<String>
        let isMaking: Bool
        /// Whether it compares an operation's state with a name, or sets it to one.
        let isNamingState: Bool
    }

    func uses(in text: String) -> [Use] {
        SwiftText(text).lines.enumerated().compactMap { index, line -> Use? in
            guard !line.trimmedOfSpace().hasPrefix("//") else { return nil }
            return Use(
                line: index + 1, tables: named(in: line), isMaking: makesTable(line),
                isNamingState: line.contains(/\bstate (?:=|<>|!=|IN|NOT IN) \(?'[a-z]/))
        }
    }

    /// The tables that a line names, by whichever name.
    private func named(in line: String) -> Set<String> {
        var names = Set(line.matches(of: /tidemark_[a-z_]+/).map { String($0.0) }).intersection(tables)
        if !Self.namesScopes(line) { names.remove("tidemark_scope") }
        for (alias, table) in aliases where line.contains(alias) { names.insert(table) }
        if line.contains(/Marks\.(?:counter|clock)SQL/) { names.insert("tidemark_counter") }
        if Self.namesShadow(line) { names.insert(Self.shadow) }
        return names
    }

    /// Whether a line names shadows, or one of their columns. The view of how records stand has a column of that name.
    private static func namesShadow(_ line: String) -> Bool {
        let line = line.replacing(/forColumn: "tidemark_state"/, with: "")
        let columns =
            /tidemark_(?:row|state|version|bases|mark|since|edited|routing_scope|group|gone|was)(?![a-z_])/
        return line.contains(columns) || line.contains(/tidemark\\*_(?:shadow|touched)\\*_/)
            || line.contains(/(?:shadow|touched)(?:SQL|Name|Prefix)/)
            || line.contains(/shadows?\.sql(?![A-Za-z])|(?:Shadow|Touched)Table\(.*\)\.sql(?![A-Za-z])/)
            || line.contains(/tidemark_scope(?![a-z_])/) && !namesScopes(line)
    }

    /// Whether a line names the table of scopes, and not the column of a shadow that is called so too.
    private static func namesScopes(_ line: String) -> Bool {
        line.contains(/(?:FROM|INTO|UPDATE|JOIN|TABLE)\s+(?:main\.)?tidemark_scope(?![a-z_])/)
    }

    /// Whether a line makes a table, an index or a view of the library's; tables of a connection's own are none.
    private func makesTable(_ line: String) -> Bool {
        line.contains(/CREATE (?:TABLE|VIEW|(?:UNIQUE )?INDEX) (?:IF NOT EXISTS )?tidemark_/)
            || line.contains(/CREATE TABLE (?:IF NOT EXISTS )?\\\(/)
            || line.contains(/CREATE (?:UNIQUE )?INDEX .*(?:ON |tidemark_(?:group|mark)_).*(?:shadow|touched)SQL/)
    }
}

@Suite("Tables of the library where their types are")
struct StoreRuleTests {
    @Test("Nobody else names them in SQL, and one file makes them")
    func homes() {
        let rule = StoreRule(files: Repository.files)
        #expect(rule.tables.isSuperset(of: ["tidemark_operation", "tidemark_quarantine", "tidemark_blob_file"]))
        #expect(rule.aliases["Outbox.table"] == "tidemark_operation")
        expectNone(Repository.faults(in: ["Sources"]) { rule.faults(path: $0, text: $1) })
    }

    private static let rule = StoreRule(files: [
        Repository.File(
            path: StoreRule.home + "LibrarySchema+Tables.swift",
            text: ["operation", "orphan", "scope", "counter"].map { "CREATE TABLE tidemark_\($0)(id)\n" }.joined()),
        Repository.File(
            path: StoreRule.home + "Outbox/Outbox.swift", text: #"static let table = "tidemark_operation""# + "\n"),
    ])

    private func lines(_ place: String, _ text: String) -> [Int] {
        Self.rule.faults(path: "Sources/\(place)", text: text).map(\.line)
    }

    @Test("A statement elsewhere is found, at its line")
    func planted() {
        let sent = "let sql =\n    \"SELECT 1 FROM tidemark_operation\"\n"
        #expect(lines("Tidemark/Apply/A.swift", sent) == [2] && lines("Tidemark/Store/A.swift", sent) == [2])
        #expect(lines("Tidemark/Store/Outbox/A.swift", sent).isEmpty && lines("TidemarkTesting/A.swift", sent).isEmpty)
        #expect(lines("TidemarkCommand/A.swift", sent) == [2])
        let orphan = #"try Query(db, "DELETE FROM tidemark_orphan WHERE id = ?1")"#
        #expect(lines("Tidemark/Scopes/A.swift", orphan) == [1] && lines("Tidemark/Store/A.swift", orphan) == [1])
        #expect(lines("Tidemark/Store/OrphanedEdits.swift", orphan).isEmpty)
        #expect(lines("Tidemark/Scopes/A.swift", "// of tidemark_orphan\n").isEmpty)
        #expect(lines("Tidemark/Scopes/A.swift", #""SELECT 1 FROM \(Outbox.table)""#) == [1])
        #expect(lines("Tidemark/Store/A.swift", #""SELECT 1 FROM \(Outbox.table)""#) == [1])
        #expect(lines("Tidemark/Scopes/A.swift", #""SELECT name FROM tidemark_scope""#) == [1])
        #expect(lines("Tidemark/Capture/CaptureTriggers.swift", #""UPDATE tidemark_counter""#).isEmpty)
        #expect(lines("Tidemark/Capture/CaptureTriggers.swift", #""DELETE FROM tidemark_orphan""#) == [1])
        #expect(lines("Tidemark/Capture/Installation.swift", #""UPDATE tidemark_counter""#) == [1])
        #expect(lines("Tidemark/Capture/Installation.swift", #""SET clock = \(Marks.clockSQL)""#) == [1])
    }

    @Test("A state's name in SQL is found; an interpolated one is none")
    func states() {
        #expect(lines("Tidemark/Store/Outbox/A.swift", #""WHERE state = 'rejected' LIMIT 1""#) == [1])
        #expect(lines("Tidemark/Store/Outbox/A.swift", #""WHERE state NOT IN ('lost', 'losing')""#) == [1])
        #expect(lines("Tidemark/Store/Outbox/A.swift", #""SET state = '\(state.rawValue)'""#).isEmpty)
    }

    @Test(
        "A shadow is found by its name, however that is written, and by its columns",
        arguments: [
            #""SELECT 1 FROM \(shape.shadowSQL)""#, #""DELETE FROM \(shape.touchedSQL)""#,
            "TableSchema.shadowPrefix + name", #"quoted("tidemark_shadow_\(table)")"#,
            #""name LIKE 'tidemark\\_shadow\\_%'""#, #""WHERE tidemark_scope = ?1""#, #""tidemark_mark IS NOT NULL""#,
            #""WHERE s.tidemark_gone = 1""#, #""SELECT 1 FROM \(ShadowTable(shape).sql)""#, #""FROM \(shadows.sql)""#,
        ])
    func shadows(_ text: String) {
        #expect(lines("Tidemark/Scopes/A.swift", text) == [1] && lines("Tidemark/Store/A.swift", text) == [1])
        #expect(lines("Tidemark/Store/Shadows/A.swift", text).isEmpty)
        #expect(lines("Tidemark/Scopes/A.swift", "/// \(text)\n").isEmpty)
    }

    @Test(
        "A table, an index or a view that another file makes is found; one of a connection's own is none",
        arguments: [
            (#""CREATE TABLE tidemark_new(id)""#, true),
            (#""CREATE UNIQUE INDEX tidemark_new_id ON tidemark_new(id)""#, true),
            (#""CREATE TABLE \(sql)(id)""#, true), (#""CREATE VIEW tidemark_end AS SELECT 1""#, true),
            (#""CREATE TEMP TABLE tidemark_seen(id)""#, false), (#""CREATE INDEX \(name) ON \(shape.sql)(id)""#, false),
        ])
    func made(_ text: String, isFault: Bool) {
        #expect(lines("Tidemark/Store/A.swift", text).isEmpty == !isFault)
        #expect(lines("Tidemark/Store/LibrarySchema+Tables.swift", text).isEmpty)
    }
}
