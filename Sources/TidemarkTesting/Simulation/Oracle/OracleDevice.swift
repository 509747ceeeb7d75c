import GRDB
import Tidemark
import TidemarkCore
import TidemarkServer
import TidemarkWire

/// What the oracle knows of a device's file from watching it: a value, so that it is restored and cloned with the file.
struct OracleDevice {
    /// What an act wrote into a cell, or that it deleted a record.
    struct Write {
        var serial: Int
        /// `nil` for a delete.
        var value: Value?
        /// The row as the act left it, or, where it deleted it, as it was.
        var row: [Value]
        /// Whether it was sealed when the file was copied, or put back: what became of it may have been told to the
        /// other copy.
        var isCopied = false
        /// Whether it deleted a row that the server was not known to have.
        var isBaseless = false
        /// Each scope's head when it was written.
        var after: [Scope: Version]
        /// Whether it gives way to what the server has: it was written to a column that this device had just made.
        var isYielding = false
        /// Where the server's log has it.
        var logged: (scope: Scope, version: Version)?
    }

    /// The version that a record is known to stand at, at least.
    struct Bound {
        var history = 0
        var version: Version = 0
    }

    /// Columns that a migration brought and the server filled: its newest values, over rows as old as the last page.
    struct Filled {
        var places: [Int]
        /// The scope's history and head when they were filled: with the pages up to it each row is of one version.
        var history: Int
        var head: Version
    }

    struct Standing: Hashable {
        var complete: Version?
        /// What the server is asked to go on from.
        var checkpoint: String?
        var epoch: String?
        var isLost: Bool
        var isBootstrapping: Bool
    }

    /// The file as it was seen last.
    var sight = Sight()
    var bounds: [Scope: [OracleKey: Bound]] = [:]
    /// By scope and table.
    var filled: [Scope: [String: Filled]] = [:]
    /// By record and column; a delete has none. What an act wrote and nobody has outdone yet.
    var writes: [OracleKey: [String: Write]] = [:]
    /// All that acts ever wrote here: an outbox may still have it below what stands.
    var written: Set<OracleCell> = []
    /// Records made here while a row of the server's with their id was quarantined: nothing says on what.
    var unfounded: Set<OracleKey> = []
    /// Records of which two scopes have a row each: one of them stands, and where it goes the other one comes up.
    var scattered: Set<OracleKey> = []
    var lastRefusal: Int64 = 0
    /// Records that the server has deleted, and that a table restored from elsewhere resurrected here.
    var resurrected: Set<OracleKey> = []

    struct Sight {
        var rows: [OracleKey: [Value]] = [:]
        /// The server's rows below edits under way; `nil` for none.
        var shadows: [OracleKey: [Value]?] = [:]
        var quarantined: Set<OracleKey> = []
        /// Records that stand twice in the file, under the server's id and, with these cells, under a temporary one.
        var doubled: [OracleKey: [Value]] = [:]
        /// Records that the server is asked for by name: until then this device does not know how they stand.
        var refetch: Set<OracleKey> = []
        var scopes: [Scope: Standing] = [:]
        /// What acts wrote while nobody noted it: the server's row as it was known then, `nil` for none, of each record
        /// for which the device has not found that out yet.
        var uncaptured: [OracleKey: [Value]?] = [:]
        /// Records of which the device has found that they differ, and not yet what the server says.
        var inferred: Set<OracleKey> = []
        /// Those that are held against the server's row, and wait for the app's word.
        var held: Set<OracleKey> = []
        /// Synced tables that are not there now, under their names.
        var missing: Set<String> = []
        /// Places in a table's data that the device has not asked the server for yet.
        var unfilled: [String: [Int]] = [:]
        /// Rows of which no record id can be made, by table, in an order.
        var odd: [String: [String]] = [:]
        /// How many triggers note what is written to tables whose schema acts change.
        var captureCounts: [String: Int] = [:]

        /// The server's row of a record as this device knows it.
        func base(_ key: OracleKey) -> [Value]? {
            let row: [Value]? = uncaptured[key] ?? rows[key]
            let base: [Value]? = shadows[key] ?? row
            guard var cells = base, let unfilled = unfilled[key.entity] else { return base }
            for index in unfilled { cells[index] = .absent }
            return cells
        }
    }
}

extension OracleDevice.Sight {
    init(_ db: Database, _ tables: [OracleTable], _ names: OracleNames, after former: Self) throws {
        uncaptured = former.uncaptured
        for table in tables {
            guard let sql = try read(db, table, after: former) else { continue }
            var renamed: [OracleKey: [Value]] = [:]
            try Self.each(db, sql.rows) { row in
                if table.isOdd(row) { return odd[table.name, default: []].append(table.text(row)) }
                let (key, cells) = (table.key(row), table.cells(row).map { names[$0] })
                if names[key] == key { rows[key] = cells } else { renamed[names[key]] = cells }
            }
            // The record may have come from the server before this device heard that it is its own.
            let real = Set(rows.keys)
            for (key, cells) in renamed where real.contains(key) { doubled[key] = cells }
            rows.merge(renamed) { real, _ in real }
            // State 1: these are the server's cells; 0 and 2: the server has no such row (LibrarySchema, Shadow).
            try Self.each(db, sql.shadows) { row in
                if table.isOdd(row) { return }
                let cells = table.state(row) == 1 ? table.cells(row).map { names[$0] } : nil
                let key = table.key(row)
                guard names[key] == key || !real.contains(names[key]) else {
                    doubled[names[key], default: []] += []
                    return
                }
                shadows.updateValue(cells, forKey: names[key])
            }
            odd[table.name]?.sort()
            try readFirstCapture(db, table, names)
        }
        try Self.each(db, "SELECT entity, record FROM tidemark_refetch") {
            refetch.insert(names[OracleKey(entity: $0[0], record: $0[1])])
        }
        try Self.each(db, "SELECT entity, record FROM tidemark_quarantine") {
            quarantined.insert(names[OracleKey(entity: $0[0], record: $0[1])])
        }
        try Self.each(
            db,
            """
            SELECT name, complete, checkpoint, epoch, lost_at,
              EXISTS (SELECT 1 FROM tidemark_bootstrap WHERE scope = name)
            FROM tidemark_scope
            """
        ) { row in
            guard let scope = Scope(row[0] as String) else { return }
            scopes[scope] = OracleDevice.Standing(
                complete: row[1], checkpoint: row[2], epoch: row[3], isLost: (row[4] as Int64?) != nil,
                isBootstrapping: row[5])
        }
    }

    static func each(_ db: Database, _ sql: String, _ visit: (Row) throws -> Void) throws {
        let cursor = try Row.fetchCursor(try db.cachedStatement(sql: sql))
        while let row = try cursor.next() { try visit(row) }
    }
}

/// What a file says of a record beside its row.
struct OracleListing {
    /// Whether an edit was refused, met another one or waits for a decision, and the app can ask for it.
    var isListed = false
    /// Whether an edit of it is kept until its scope comes back, or another record's verdict, or the server is asked
    /// what became of it.
    var isKept = false
    /// Whether an operation that touches the same place has no verdict yet.
    var isOpen = false

    init() {}

    func joined(with other: OracleListing) -> OracleListing {
        var joined = self
        joined.isListed = isListed || other.isListed
        joined.isKept = isKept || other.isKept
        joined.isOpen = isOpen || other.isOpen
        return joined
    }

    init(_ db: Database, _ table: OracleTable, _ key: OracleKey, _ column: String, _ write: OracleDevice.Write) throws {
        let statement = try db.cachedStatement(
            sql: """
                SELECT EXISTS (SELECT 1 FROM tidemark_operation WHERE entity = ?1 AND record = ?2
                    AND state IN ('rejected', 'conflict') AND (kind = 'delete') = ?4
                    AND instr(CAST(coalesce(content, members) AS TEXT), ?5)
                    AND instr(CAST(coalesce(content, members) AS TEXT), ?3))
                  OR EXISTS (SELECT 1 FROM tidemark_conflict WHERE entity = ?1 AND record = ?2 AND is_delete = ?4
                    AND (instr(CAST(fields AS TEXT), ?6) AND instr(CAST(fields AS TEXT), ?3)
                      OR instr(CAST(whole AS TEXT), ?5 || ?7))),
                EXISTS (SELECT 1 FROM tidemark_orphan WHERE entity = ?1 AND record = ?2)
                  OR EXISTS (SELECT 1 FROM tidemark_blocked WHERE entity = ?1 AND record = ?2
                    AND reason = 'refused')
                  OR EXISTS (SELECT 1 FROM tidemark_refetch WHERE entity = ?1 AND record = ?2),
                EXISTS (SELECT 1 FROM tidemark_operation WHERE entity = ?1 AND record = ?2 AND finished_at IS NULL
                    AND (?4 OR kind = 'delete' OR instr(CAST(coalesce(content, members) AS TEXT), ?5)))
                """)
        let name = column.isEmpty ? "" : "\"\(column)\":"
        let value = write.value.map { $0 == .null ? "null" : $0.bare } ?? ""
        // Of a long text only what changed may be in the list.
        let needle = table.patched.contains(column) ? name : value
        let row = try Row.fetchOne(
            statement,
            arguments: [
                key.entity, key.record, needle, write.value == nil, name,
                column.isEmpty ? "" : "\"field\":\"\(column)\"", write.value?.json ?? "",
            ])
        (isListed, isKept, isOpen) = (row?[0] ?? false, row?[1] ?? false, row?[2] ?? false)
    }

    /// Whether an operation without a verdict sets a field to this value.
    static func isSent(
        _ db: Database, _ entity: String, _ record: String, _ column: String, _ value: Value
    ) throws -> Bool {
        let statement = try db.cachedStatement(
            sql: """
                SELECT EXISTS (SELECT 1 FROM tidemark_operation WHERE entity = ? AND record = ? AND finished_at IS NULL
                    AND instr(CAST(coalesce(content, members) AS TEXT), ?))
                """)
        return try Bool.fetchOne(statement, arguments: [entity, record, "\"\(column)\":\(value.json)"]) ?? false
    }

    /// Whether the app was asked to decide about this value in a field, whatever it has decided.
    static func isAsked(
        _ db: Database, _ entity: String, _ record: String, _ column: String, _ value: Value
    ) throws -> Bool {
        let statement = try db.cachedStatement(
            sql: """
                SELECT EXISTS (SELECT 1 FROM tidemark_conflict, json_each(CAST(fields AS TEXT)) AS field
                    WHERE entity = ? AND record = ? AND rule = 'manual' AND field.value ->> 'field' = ?
                    AND field.value -> 'mine' = ?)
                """)
        return try Bool.fetchOne(statement, arguments: [entity, record, column, value.json]) ?? false
    }
}

/// An operation that a file holds under the key by which the server knows it: what became of it may have been told to
/// another copy of the file.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct SealedEdit {
    private var isDelete: Bool
    private var members: String

    func touches(_ column: String) -> Bool { column.isEmpty ? isDelete : members.contains("\"\(column)\"") }

    static func all(in device: SimulatedDevice, _ names: OracleNames) -> [OracleKey: [SealedEdit]] {
        var edits: [OracleKey: [SealedEdit]] = [:]
        try? device.file.queue.unsafeRead { db in
            let sql = """
                SELECT entity, record, kind = 'delete', CAST(coalesce(content, members) AS TEXT) FROM tidemark_operation
                WHERE lane IS NOT NULL
                """
            try OracleDevice.Sight.each(db, sql) { row in
                let edit = SealedEdit(isDelete: row[2], members: row[3])
                edits[names[OracleKey(entity: row[0], record: row[1])], default: []].append(edit)
            }
            for packed in try OutboxHistory.all(db) {
                let edit = SealedEdit(
                    isDelete: packed.isDelete, members: String(decoding: packed.members, as: UTF8.self))
                edits[names[OracleKey(entity: packed.entity, record: packed.record)], default: []].append(edit)
            }
        }
        return edits
    }
}
