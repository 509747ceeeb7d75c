import Foundation
import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

/// A record's name, for the oracle: the entity and the id on the wire.
struct OracleKey: Hashable, Comparable, CustomStringConvertible {
    var entity: String
    var record: String

    var description: String { "\(entity) \(record)" }
    static func < (lhs: Self, rhs: Self) -> Bool { (lhs.entity, lhs.record) < (rhs.entity, rhs.record) }
}

/// A synced table as the app's schema says it.
struct OracleTable {
    let name: String
    let data: [String]
    /// What a column holds where nobody says; `nil` where that cannot be told: it is an expression, or the schema has
    /// no value for that case.
    let defaults: [Value?]
    /// Columns that only the server writes.
    let authoritative: Set<String>
    /// The scopes that a row may be in.
    let scopes: [Scope]
    /// Where in a row's data the scope's name stands, and what precedes it there.
    let place: (index: Int, prefix: String)?
    /// Columns of which only what changed is sent.
    let patched: Set<String>
    /// Whether the server makes its records' ids.
    let hasServerIDs: Bool
    /// Whether an edit revives a deleted record.
    let isRevivedByEdits: Bool
    /// Whether the app decides about conflicts, and so may make a deleted record anew, as it was when they met.
    let isDecidedByApp: Bool
    /// What the schema does with rows whose parent is deleted.
    let parents: [OracleParent]
    let rowsSQL: String
    let shadowsSQL: String
    /// Makes a row of a record's id and its data.
    let insertSQL: String
    /// How many triggers note what is written to it; `nil` where no act changes the schema.
    let captureCount: Int?
    /// Rows that a new device has and that nobody has written.
    private(set) var seeds: [(key: OracleKey, cells: [Value])] = []
    func hasSeed(_ key: OracleKey) -> Bool { seeds.contains { $0.key == key } }
    func seed(_ key: OracleKey, _ column: String) -> Value? {
        data.firstIndex(of: column).flatMap { index in seeds.first { $0.key == key }?.cells[index] }
    }
    /// Whether there may be rows of which no record id can be made.
    let isOddlyKeyed: Bool
    let keyNames: [String]
    private var keyCount: Int { keyNames.count }
    private let hasPlainKey: Bool

    init(_ db: Database, _ table: SyncedTable, app: SimulatedApp) throws {
        name = table.name
        let columns = try Row.fetchAll(db, sql: "PRAGMA table_info('\(table.name)')")
        var keys = columns.filter { ($0["pk"] as Int) > 0 }.sorted { ($0["pk"] as Int) < ($1["pk"] as Int) }
        if keys.isEmpty { keys = Array(columns.prefix(1)) }
        let keyNames = keys.map { $0["name"] as String }
        self.keyNames = keyNames
        let others = columns.filter { !keyNames.contains($0["name"]) }
        let later = app.migrating[table.name]
        let data = others.map { $0["name"] as String } + (later ?? [])
        self.data = data
        isOddlyKeyed = app.oddlyKeyed.contains(table.name)
        captureCount =
            try later == nil ? nil : Int.fetchOne(db, sql: Self.captureSQL, arguments: [table.name])
        defaults =
            try others.map { column in
                guard let text = column["dflt_value"] as String? else { return column["notnull"] as Bool ? nil : .null }
                guard !text.contains("(") else { return nil }
                return Value(try DatabaseValue.fetchOne(db, sql: "SELECT \(text)") ?? .null)
            } + (later ?? []).map { _ in .null }
        let type = (keys[0]["type"] as String).uppercased()
        hasPlainKey = keyNames.count == 1 && ["INT", "CHAR", "CLOB", "TEXT"].contains { type.contains($0) }
        let declared = app.entities.first { $0.name == table.name }
        authoritative = Set(declared?.serverFields ?? [])
        patched = Set(declared?.patch ?? [])
        hasServerIDs = declared?.ids == .server
        isRevivedByEdits = declared?.deletes == .lose
        isDecidedByApp = declared?.conflict == .manual
        parents = try Row.fetchAll(db, sql: "PRAGMA foreign_key_list('\(table.name)')").compactMap { row in
            guard let index = data.firstIndex(of: row["from"]) else { return nil }
            return OracleParent(index: index, table: row["table"], isCascade: row["on_delete"] == "CASCADE")
        }
        let rule = try String.fetchOne(db, sql: "SELECT rule FROM tidemark_table WHERE name = ?", arguments: [name])
        let parts = (rule ?? "").split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        if parts.count == 3, parts[0] == "column", let index = data.firstIndex(of: String(parts[2])) {
            let prefix = parts[1].prefix { $0 != "~" }
            (scopes, place) = (app.parts.filter { $0.subscope == table.subscope }, (index, String(prefix)))
        } else {
            let own = app.parts.filter { $0.subscope == table.subscope }
            (scopes, place) = (parts.count > 1 ? own.filter { $0.name == parts[1] } : own, nil)
        }
        let list = (keyNames + data).map { "\"\($0)\"" }.joined(separator: ", ")
        rowsSQL = "SELECT \(list) FROM \"\(name)\""
        // A conflict clause of the app's schema would let the row in at another one's cost.
        let isPlain = hasPlainKey
        let places = keyNames.indices.map { isPlain ? "?1" : "json_extract(?1, '$[\($0)]')" }
        let values = data.indices.map { "?\($0 + 2)" }
        insertSQL = "INSERT OR ABORT INTO \"\(name)\" (\(list)) VALUES (\((places + values).joined(separator: ", ")))"
        shadowsSQL = "SELECT \(list), tidemark_state FROM \"tidemark_shadow_\(name)\""
        guard app.seeded.contains(table.name) else { return }
        for row in try Row.fetchAll(db, sql: rowsSQL) { seeds.append((key(row), cells(row))) }
    }

    static let captureSQL = """
        SELECT count(*) FROM sqlite_master
        WHERE type = 'trigger' AND tbl_name = ?1 AND name GLOB 'tidemark_capture_*'
        """

    /// How rows and shadows are read where the schema may have changed.
    func reading(_ columns: Set<String>, shadow known: Set<String>) -> (rows: String, shadows: String) {
        func list(_ isThere: (String) -> Bool) -> String {
            (keyNames.map { "\"\($0)\"" } + data.map { isThere($0) ? "\"\($0)\"" : "CAST('absent' AS BLOB)" })
                .joined(separator: ", ")
        }
        return (
            "SELECT \(list(columns.contains)) FROM \"\(name)\"",
            known.isEmpty
                ? "SELECT 1 WHERE 0"
                : "SELECT \(list { columns.contains($0) && known.contains($0) }), tidemark_state "
                    + "FROM \"tidemark_shadow_\(name)\""
        )
    }

    /// A row as one line.
    func text(_ row: Row) -> String {
        (0..<keyCount + data.count).map { Value(row[$0] as DatabaseValue).bare }.joined(separator: "|")
    }

    /// Whether no record id can be made of a row's key.
    func isOdd(_ row: Row) -> Bool {
        isOddlyKeyed && ((0..<keyCount).contains { row[$0] == nil } || RecordID(key(row).record) == nil)
    }

    func key(_ row: Row) -> OracleKey {
        let values = (0..<keyCount).map { Value(row[$0] as DatabaseValue) }
        return OracleKey(entity: name, record: hasPlainKey ? values[0].bare : Self.composite(values))
    }

    private static func composite(_ values: [Value]) -> String {
        var writer = JSONWriter(capacity: 32)
        writer.raw("[")
        for (index, value) in values.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.value(value)
        }
        writer.raw("]")
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    func cells(_ row: Row) -> [Value] { data.indices.map { Value(row[keyCount + $0] as DatabaseValue) } }

    func state(_ row: Row) -> Int64 { row[keyCount + data.count] }

    /// The data of a row of the log, with defaults where it says nothing; `nil` where anything may stand.
    func cells(_ payload: [UInt8]) throws -> [Value?] {
        let values = try DataObject(stored: payload).values
        return data.indices.map { values[data[$0]] ?? defaults[$0] }
    }

    /// The scopes that a row with these cells is in, or, where there is no row, that it may have been in.
    func scopes(of cells: [Value]?) -> [Scope] {
        guard let cells, let place else { return scopes }
        return scopes.filter { $0.parent.name == place.prefix + cells[place.index].bare }
    }
}

/// A reference of a table to another one's key.
struct OracleParent {
    /// Where in a row's data it stands.
    var index: Int
    var table: String
    /// Whether the row goes with its parent; else it may lose the reference.
    var isCascade: Bool

    func key(_ cells: [Value]) -> OracleKey? {
        cells[index] == .null ? nil : OracleKey(entity: table, record: cells[index].bare)
    }
}

extension Value {
    /// In the place of a column that a device's schema does not have: anything may stand in the log.
    static let absent = Value.blob(Array("absent".utf8))

    init(_ value: DatabaseValue) {
        switch value.storage {
        case .null: self = .null
        case .int64(let integer): self = .integer(integer)
        case .double(let real): self = .real(real)
        case .string(let text): self = .text(text)
        case .blob(let data): self = .blob(Array(data))
        }
    }

    var databaseValue: DatabaseValue {
        switch self {
        case .null: .null
        case .integer(let integer): integer.databaseValue
        case .real(let real): real.databaseValue
        case .text(let text): text.databaseValue
        case .blob(let bytes): Data(bytes).databaseValue
        }
    }

    /// As it stands in an operation.
    var json: String {
        switch self {
        case .null: "null"
        case .text(let text): "\"\(text)\""
        default: bare
        }
    }

    /// As it stands in an id, and in a report.
    var bare: String {
        switch self {
        case .null: "NULL"
        case .integer(let integer): "\(integer)"
        case .real(let real): "\(real)"
        case .text(let text): text
        case .blob(let bytes): "\(bytes.count) bytes"
        }
    }
}
