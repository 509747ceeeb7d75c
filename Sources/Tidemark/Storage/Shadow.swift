import GRDB
import TidemarkWire

/// The last server row known of a record that has edits under way (its columns stand in the shadow table as they were
/// before the first edit).
struct Shadow: Hashable {
    enum State: Int64 {
        /// The server has no such row, as far as is known.
        case absent = 0
        /// `cells` is the server's row.
        case known = 1
        /// Deleted on the server under an edit made here; `cells` is what the edit was made on.
        case deleted = 2
    }

    var state: State
    var cells: [Cell]
    /// The row's version where it is remembered; else the row stands at or below the scope's `complete`.
    var version: Version?
    /// Fields whose edit was made on an older row than this one; the empty name stands for a delete.
    var bases: [String: Version] = [:]
    /// What edited fields were when they were edited, where a later row of the server's has come under the edit.
    var originals: [String: Cell] = [:]
    /// The place among the marks; `nil` where nothing is new since the last sealing.
    var mark: Int64?
    var since: Int64?
    /// The stamp of the last edit.
    var edited: Int64?
    /// In a table whose rows are spread over scopes: the scope whose row this is, or to which it was sent; `nil` where
    /// it was never sent.
    var scope: String?
    /// There too: the scope that has to look at the mark, by name; empty where any of them may.
    var place: String?
    /// Whether the app itself took the row away last. A row that is parked is then not what the app made, even where
    /// the record has edits.
    var isGone = false

    static let deletionBase = ""
}

/// The statements of one synced table and its shadow.
struct RecordTable {
    let shape: TableShape
    private let rowSelect: String
    private let rowDelete: String
    private let rowUpsert: String
    private let shadowSelect: String
    private let shadowUpsert: String
    private let shadowDelete: String
    private let shadowParked: String
    private let shadowUnmark: String
    private let shadowMark: String
    private let shadowSettled: String
    private let shadowPlace: String
    private let holderSelect: String

    init(_ shape: TableShape) {
        self.shape = shape
        let keys = shape.key.map(\.sql)
        let isKey = keys.enumerated().map { "\($1) = ?\($0 + 1)" }.joined(separator: " AND ")
        let keyList = keys.joined(separator: ", ")
        let dataList = shape.data.map { ", \($0.sql)" }.joined()
        // One constant column keeps the list from being empty in a table that is all key.
        rowSelect = "SELECT 1\(dataList) FROM \(shape.sql) WHERE \(isKey)"
        rowDelete = "DELETE FROM \(shape.sql) WHERE \(isKey)"
        rowUpsert = Self.upsert(shape, Array(shape.data.indices))
        let extra = """
            tidemark_state, tidemark_version, tidemark_bases, tidemark_mark, tidemark_since, tidemark_edited, \
            tidemark_scope, tidemark_place, tidemark_gone
            """
        shadowSelect = "SELECT \(extra)\(dataList) FROM \(shape.shadowSQL) WHERE \(isKey)"
        shadowUnmark = """
            UPDATE \(shape.shadowSQL) SET tidemark_mark = NULL, tidemark_since = NULL WHERE \(isKey)
            """
        shadowMark = """
            UPDATE \(shape.shadowSQL) SET tidemark_mark = coalesce(tidemark_mark, (SELECT n FROM tidemark_counter)), \
            tidemark_since = coalesce(tidemark_since, tidemark_edited >> 16) WHERE \(isKey)
            """
        shadowSettled = """
            SELECT 1 FROM \(shape.shadowSQL) WHERE \(isKey)
            AND tidemark_mark IS NULL AND tidemark_version IS NULL
            AND tidemark_state <> \(Shadow.State.deleted.rawValue) AND tidemark_scope IS ?\(keys.count + 1)
            """
        shadowPlace = "UPDATE \(shape.shadowSQL) SET tidemark_place = ?\(keys.count + 1) WHERE \(isKey)"
        holderSelect = """
            SELECT coalesce(nullif((SELECT tidemark_scope FROM \(shape.shadowSQL) WHERE \(isKey)), ''),
              (SELECT \(shape.scopeSQL("t")) FROM \(shape.sql) AS t WHERE \(isKey)),
              (SELECT tidemark_place FROM \(shape.shadowSQL) WHERE \(isKey)))
            """
        shadowParked = "UPDATE \(shape.shadowSQL) SET tidemark_gone = NULL WHERE \(isKey)"
        shadowDelete = "DELETE FROM \(shape.shadowSQL) WHERE \(isKey)"
        let marks = (1...(keys.count + 9 + shape.data.count)).map { "?\($0)" }.joined(separator: ", ")
        let names = extra.split(separator: ",").map { $0.trimmingPrefix(" ") } + shape.data.map { $0.sql[...] }
        let sets = names.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        shadowUpsert = """
            INSERT INTO \(shape.shadowSQL)(\(keyList), \(extra)\(dataList)) VALUES (\(marks)) \
            ON CONFLICT(\(keyList)) DO UPDATE SET \(sets)
            """
    }

    /// Writes the given data columns of a row, whether it exists or not. OR ABORT overrides conflict clauses in the
    /// app's schema: a REPLACE there would evict another row unseen.
    ///
    /// - Parameter isWhole: the columns are all that the record has; in a row that exists the others return to their
    ///   defaults, which is what `excluded` holds for a column that is not named.
    /// - Parameter only: a condition that a row which exists has to meet.
    static func upsert(
        _ shape: TableShape, _ indexes: [Int], isWhole: Bool = false, only: String? = nil
    ) -> String {
        let keys = shape.key.map(\.sql)
        let columns = indexes.map { shape.data[$0].sql }
        let others = shape.data.indices.filter { isWhole && shape.data[$0].returnsToDefault && !indexes.contains($0) }
        let marks = (1...(keys.count + columns.count)).map { "?\($0)" }.joined(separator: ", ")
        let sets = (columns + others.map { shape.data[$0].sql })
            .map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        return """
            INSERT OR ABORT INTO \(shape.sql)(\((keys + columns).joined(separator: ", "))) VALUES (\(marks)) \
            ON CONFLICT(\(keys.joined(separator: ", "))) DO \(sets.isEmpty ? "NOTHING" : "UPDATE SET \(sets)")\
            \(only.map { " WHERE \($0)" } ?? "")
            """
    }

    // MARK: Scopes

    /// By name, the scope that has the record on this device, with its row or with edits of it; the empty text where
    /// the row was never sent and belongs to none, `nil` where there is neither row nor edit.
    func holder(_ db: Database, _ key: [Cell]) throws -> String? {
        try Query(db, holderSelect).first(db, key) { $0.optionalText(0) } ?? nil
    }

    /// Where the mark of a record belongs after all.
    func setPlace(_ db: Database, _ key: [Cell], _ place: String) throws {
        try Query(db, shadowPlace).execute(key + [.text(place)])
    }

    // MARK: The app's table

    func row(_ db: Database, _ key: [Cell]) throws -> [Cell]? {
        try Query(db, rowSelect).first(db, key) { $0.cells(1..<(shape.data.count + 1)) }
    }

    func deleteRow(_ db: Database, _ key: [Cell]) throws { try Query(db, rowDelete).execute(key) }

    func write(_ db: Database, _ key: [Cell], _ cells: [Cell]) throws { try Query(db, rowUpsert).execute(key + cells) }

    // MARK: The shadow

    var shadowsExistSQL: String { "SELECT 1 FROM \(shape.shadowSQL) LIMIT 1" }

    func hasShadows(_ db: Database) throws -> Bool {
        try Query(db, shadowsExistSQL).first(db, [], { _ in true }) ?? false
    }

    func shadow(_ db: Database, _ key: [Cell]) throws -> Shadow? {
        try Query(db, shadowSelect).first(db, key) { row in
            let (bases, originals) = Self.readBases(row.blob(2))
            return Shadow(
                state: Shadow.State(rawValue: row.integer(0)) ?? .absent,
                cells: row.cells(9..<(9 + shape.data.count)), version: row.optionalInteger(1), bases: bases,
                originals: originals, mark: row.optionalInteger(3), since: row.optionalInteger(4),
                edited: row.optionalInteger(5), scope: row.optionalText(6).flatMap { $0.isEmpty ? nil : $0 },
                place: row.optionalText(7), isGone: row.optionalInteger(8) == 1)
        }
    }

    func write(_ db: Database, _ key: [Cell], _ shadow: Shadow) throws {
        let extra: [Cell] = [
            .integer(shadow.state.rawValue), .optional(shadow.version),
            Self.basesCell(shadow), .optional(shadow.mark), .optional(shadow.since), .optional(shadow.edited),
            .optional(shadow.scope), .optional(shadow.place), shadow.isGone ? .integer(1) : .null,
        ]
        try Query(db, shadowUpsert).execute(key + extra + shadow.cells)
    }

    /// The record's row is parked with all that was done to it.
    func parkEdits(_ db: Database, _ key: [Cell]) throws { try Query(db, shadowParked).execute(key) }

    /// What was marked is sealed, or set aside.
    func unmark(_ db: Database, _ key: [Cell]) throws { try Query(db, shadowUnmark).execute(key) }

    /// What was set aside is looked at again when the next batch is sealed.
    func mark(_ db: Database, _ key: [Cell]) throws {
        try Query(db, "UPDATE tidemark_counter SET n = n + 1").execute()
        try Query(db, shadowMark).execute(key)
    }

    /// Whether nothing was edited since the last sealing, and no row of the server's came under the edit.
    func isSettled(_ db: Database, _ key: [Cell], in scope: Scope) throws -> Bool {
        let owner: Cell = shape.isScopedByColumn ? .text(scope.name) : .null
        return try Query(db, shadowSettled).first(db, key + [owner]) { _ in true } ?? false
    }

    func dropShadow(_ db: Database, _ key: [Cell]) throws { try Query(db, shadowDelete).execute(key) }

    /// Nothing of the record is to be sent any more: what it waited for goes with its shadow.
    func forget(_ db: Database, _ key: [Cell], _ id: RecordID) throws {
        try dropShadow(db, key)
        let name = RecordName(entity: shape.name, record: id.text)
        try Waiting.forget(db, name)
        try Quarantine.forget(db, name)
    }

    /// Versions under the columns' names, values under the names behind a `$`, with which no column's name begins.
    private static func readBases(_ bytes: [UInt8]) -> ([String: Version], [String: Cell]) {
        var (bases, originals): ([String: Version], [String: Cell]) = ([:], [:])
        guard !bytes.isEmpty else { return (bases, originals) }
        _ = try? bytes.reading { (reader: inout JSONReader) throws(JSONError) in
            try reader.enterObject()
            while let name = try reader.nextMember() {
                let name = reader.string(name)
                if name.hasPrefix("$") {
                    originals[String(name.dropFirst())] = try reader.readCell()
                } else {
                    bases[name] = try reader.readInteger()
                }
            }
        }
        return (bases, originals)
    }

    private static func basesCell(_ shadow: Shadow) -> Cell {
        guard !shadow.bases.isEmpty || !shadow.originals.isEmpty else { return .null }
        var writer = JSONWriter(capacity: 32)
        var isFirst = true
        func member(_ name: String, _ write: (inout JSONWriter) -> Void) {
            writer.raw(isFirst ? "{" : ",")
            isFirst = false
            writer.string(name)
            writer.raw(":")
            write(&writer)
        }
        for base in shadow.bases.sorted(by: { $0.key < $1.key }) { member(base.key) { $0.integer(base.value) } }
        for original in shadow.originals.sorted(by: { $0.key < $1.key }) where original.value.isSendable {
            member("$" + original.key) { $0.cell(original.value) }
        }
        if isFirst { return .null }
        writer.raw("}")
        return .text(writer.bytes)
    }
}
