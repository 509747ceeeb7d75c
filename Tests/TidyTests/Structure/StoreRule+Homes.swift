import Testing

// Where each table is named in SQL, and who names it beside its type.
extension StoreRule {
    /// Makes all tables, and knows each by its name.
    static let schema = "Store/LibrarySchema"

    /// The types of each table, by their files: `X` stands for `X.swift` and its parts, `X+Part.swift`. Where a row is
    /// of several types, each reads other columns of it, or is an extension in a file of its own.
    static let homes: [String: [String]] = [
        shadow: ["Store/Shadows/", "Store/RecordTable"],
        "tidemark_alias": ["Store/Alias"],
        "tidemark_applying": ["Store/CaptureSuppression"],
        "tidemark_attachment": ["Store/Blob"],
        "tidemark_backfill": ["Store/Backfill"],
        "tidemark_backfill_seen": ["Store/Backfill"],
        "tidemark_blob": ["Store/Blob"],
        "tidemark_blob_change": ["Store/BlobChanges"],
        "tidemark_blob_file": ["Store/BlobFiles", "Store/BlobKeeping"],
        "tidemark_blocked": ["Store/BlockedEdits"],
        "tidemark_bootstrap": ["Store/Bootstrap"],
        "tidemark_cascade": ["Store/DeletedParents"],
        "tidemark_confirmed": ["Store/Confirmed"],
        "tidemark_conflict": ["Store/Conflicts"],
        "tidemark_counter": ["Store/Marks"],
        "tidemark_deleted_row": ["Store/DeletedRowCache"],
        "tidemark_first_capture": ["Store/FirstCapture"],
        "tidemark_history": ["Store/Outbox/"],
        "tidemark_inferred": ["Store/Inferred", "Store/FirstCapture+Inferred.swift"],
        "tidemark_known_version": ["Store/KnownVersions"],
        "tidemark_lane": ["Store/Outbox/"],
        "tidemark_manifest": ["Manifest/Manifest"],
        "tidemark_manifested": ["Manifest/Manifest"],
        "tidemark_meta": [schema],
        "tidemark_operation": ["Store/Outbox/"],
        "tidemark_orphan": ["Store/OrphanedEdits"],
        "tidemark_quarantine": ["Store/QuarantinedRow", "Store/QuarantinedRecord", "Store/ScopeMove"],
        "tidemark_ref": ["Store/Outbox/"],
        "tidemark_refetch": ["Store/RefetchQueue"],
        "tidemark_renaming": ["Store/RenamedIDs"],
        "tidemark_schema_end": [schema],
        "tidemark_scope": ["Store/ScopeRecord", "Store/Attempts", "Store/Deferral"],
        "tidemark_sealed_run": ["Store/SealedRun"],
        "tidemark_staged": ["Store/Bootstrap"],
        "tidemark_table": ["Store/TableRules", "Store/CaptureRecord", "Store/FirstCapture.swift"],
    ]

    /// A file or a type's files, the tables of other types that they may name, and the cause.
    struct Exception {
        let place: String
        let tables: Set<String>
        let because: String
    }

    static let exceptions: [Exception] = [
        // In the room Store: statements over several tables.
        Exception(
            place: "Store/RecordStateRule",
            tables: [
                "tidemark_blocked", "tidemark_conflict", "tidemark_counter", "tidemark_inferred", "tidemark_operation",
            ],
            because: "a record's state is the first of several tables' that holds, and the view is made of them"),
        Exception(
            place: "Store/BlobKeeping",
            tables: [
                "tidemark_blob", "tidemark_conflict", "tidemark_deleted_row", "tidemark_operation", "tidemark_orphan",
                "tidemark_quarantine",
            ],
            because: "a file stays for as long as a row of any of these names it"),
        Exception(
            place: "Store/BlobFiles", tables: ["tidemark_blob"],
            because: "whether a file may go is worked out for all of them at once from what is named"),
        Exception(
            place: "Store/BlobChanges", tables: ["tidemark_blob"],
            because: "notes are made of all blobs at once, and one question is about both"),
        Exception(
            place: "Store/ScopeRecord", tables: ["tidemark_bootstrap", "tidemark_manifested", "tidemark_orphan"],
            because: "whether a scope has begun, or never synced, follows from these too"),
        Exception(place: "Store/KnownVersions", tables: ["tidemark_scope"], because: "a join with the scopes here"),
        Exception(
            place: "Store/QuarantinedRow", tables: ["tidemark_scope"],
            because: "what it deletes depends on the scopes here"),
        Exception(
            place: "Store/Alias", tables: ["tidemark_table"],
            because: "one query, which an observation of the app's follows, takes a table's name in any spelling"),
        Exception(
            place: "Store/Deferral", tables: ["tidemark_counter"],
            because: "it notes the clock in the statement that reads it, by the constant of Marks"),
        Exception(
            place: "Store/Shadows/ShadowTable", tables: ["tidemark_counter"],
            because: "it numbers marks in the statement that sets them, by the constant of Marks"),
        Exception(
            place: "Store/Shadows/TouchedTable", tables: ["tidemark_applying"],
            because: "it notes a row only while capture is suppressed, in one statement for each row"),

        // In other rooms.
        Exception(
            place: "Schema/TableSchema.swift", tables: [shadow], because: "a table's shape says what they are called"),
        Exception(
            place: "Schema/TableSchema+Statements.swift", tables: [shadow, "tidemark_counter"],
            because: "the statements for one record are made once, with its table's shape, which lies below Store"),
        Exception(
            place: "Schema/TableSchema+Reading.swift", tables: ["tidemark_applying"],
            because: "triggers of the app's own may ask for it, and are looked through for that"),
        Exception(
            place: "Schema/SchemaRemark.swift", tables: ["tidemark_applying"],
            because: "its advice is SQL for the app's own triggers"),
        Exception(
            place: "File/Database+Reading.swift", tables: ["tidemark_counter"],
            because: "an observation of the app's begins with it, and lies below Store"),
        Exception(
            place: "Capture/CaptureTriggers",
            tables: [shadow, "tidemark_applying", "tidemark_blob_change", "tidemark_counter", "tidemark_quarantine"],
            because: "triggers run in the app's statements, and are one text each"),
        Exception(
            place: "Capture/RecordStateView.swift", tables: [shadow, "tidemark_first_capture"],
            because: "the view is one text, beside what it says of each record"),
    ]

    static func mayName(_ table: String, at place: String) -> Bool {
        lies(place, in: schema) || (homes[table] ?? []).contains { lies(place, in: $0) }
            || exceptions.contains { lies(place, in: $0.place) && $0.tables.contains(table) }
    }

    /// Whether a file lies in a folder (`X/`), is one file (`X.swift`), or one of a type's (`X`).
    static func lies(_ place: String, in home: String) -> Bool {
        if home.hasSuffix("/") { return place.hasPrefix(home) }
        if home.hasSuffix(".swift") { return place == home }
        return place == home + ".swift" || place.hasPrefix(home + "+")
    }

    /// The homes and exceptions where the table is not named, and which are none.
    func idle(files: [Repository.File]) -> [String] {
        let found: [(place: String, tables: Set<String>)] = files.filter { $0.path.hasPrefix(Self.target) }.map {
            (Self.place(of: $0.path), Set(uses(in: $0.text).flatMap(\.tables)))
        }
        func isIdle(_ place: String, _ table: String) -> Bool {
            !found.contains { $0.tables.contains(table) && Self.lies($0.place, in: place) }
        }
        let homes = Self.homes.flatMap { table, places in
            places.filter { isIdle($0, table) }.map { "\($0): \(table)" }
        }
        let exceptions = Self.exceptions.flatMap { exception in
            exception.tables.filter { isIdle(exception.place, $0) }.map { "\(exception.place): \($0)" }
        }
        return (homes + exceptions).sorted()
    }
}

@Suite("Homes of the library's tables")
struct StoreRuleHomeTests {
    @Test("Each table has one, and each home and each exception is needed")
    func whole() {
        let rule = StoreRule(files: Repository.files)
        #expect(Set(StoreRule.homes.keys) == rule.tables.union([StoreRule.shadow]))
        #expect(rule.idle(files: Repository.swiftFiles(in: ["Sources"])) == [])
    }

    @Test("Architecture has a row for each table, with a file of its type")
    func documented() throws {
        let page = try #require(Repository.files.first { $0.path == "Documentation/Architecture.md" }).text
        var rows: [String: String] = [:]
        for match in page.matches(of: /\n\| `([a-z_]+)(?:<table>)?` \| `([A-Za-z+]+\.swift)` \|/) {
            rows["tidemark_\(match.1)"] = String(match.2)
        }
        #expect(Set(rows.keys).subtracting(["tidemark_touched_"]) == Set(StoreRule.homes.keys))
        for (table, homes) in StoreRule.homes {
            let isHome = Repository.files.contains { file in
                file.path.hasSuffix("/" + rows[table, default: ""])
                    && homes.contains { StoreRule.lies(StoreRule.place(of: file.path), in: $0) }
            }
            #expect(isHome, "\(table)")
        }
    }

    private static let rule = StoreRule(files: [
        Repository.File(
            path: StoreRule.home + "LibrarySchema+Tables.swift",
            text: ["orphan", "quarantine", "scope", "new"].map { "CREATE TABLE tidemark_\($0)(id)\n" }.joined())
    ])

    private func isFault(_ place: String, _ table: String) -> Bool {
        let text = #"try Query(db, "DELETE FROM tidemark_\#(table) WHERE id = ?1")"# + "\n"
        return !Self.rule.faults(path: StoreRule.target + place, text: text).isEmpty
    }

    @Test("A statement in another type's file is found, also in the room Store")
    func away() {
        #expect(!isFault("Store/OrphanedEdits.swift", "orphan") && !isFault("Store/OrphanedEdits+Part.swift", "orphan"))
        #expect(isFault("Store/OrphanedEditsToo.swift", "orphan") && isFault("Store/Shadows/A.swift", "orphan"))
        #expect(isFault("Scopes/OrphanedEdits.swift", "orphan"))
        #expect(!isFault("Store/ScopeMove.swift", "quarantine") && isFault("Store/ScopeMove.swift", "orphan"))
        #expect(isFault("Store/Misfits.swift", "quarantine") && isFault("Store/Pending.swift", "scope"))
    }

    @Test("An exception is for its tables only, and a table without a home for the schema only")
    func exceptions() {
        #expect(!isFault("Store/BlobKeeping.swift", "orphan") && isFault("Store/BlobKeeping.swift", "scope"))
        #expect(!isFault("Store/QuarantinedRow.swift", "scope") && isFault("Store/ScopeMove.swift", "scope"))
        #expect(isFault("Store/New.swift", "new") && !isFault("Store/LibrarySchema+Standing.swift", "new"))
    }

    @Test("A home and an exception that nothing needs are found")
    func idle() {
        let file = Repository.File(
            path: StoreRule.home + "BlobKeeping.swift", text: #"let sql = "SELECT 1 FROM tidemark_orphan""# + "\n")
        let idle = Self.rule.idle(files: [file])
        #expect(!idle.contains("Store/BlobKeeping: tidemark_orphan"))
        #expect(idle.contains("Store/BlobKeeping: tidemark_quarantine"))
        #expect(idle.contains("Store/OrphanedEdits: tidemark_orphan"))
    }
}
