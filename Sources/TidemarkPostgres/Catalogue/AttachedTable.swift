import Foundation
import TidemarkServer
import TidemarkWire

/// A table of the operator's own whose rows are records of an entity. What it says changes only where it is attached
/// anew.
struct AttachedTable: Codable, Hashable, Sendable {
    /// Where its rows belong.
    enum Place: Codable, Hashable, Sendable {
        /// All to one scope.
        case constant(String)
        /// Each to the scope that its column names, behind a prefix.
        case column(AttachedColumn, prefix: String)

        var column: AttachedColumn? {
            switch self {
            case .constant: nil
            case .column(let column, _): column
            }
        }
    }

    var id: Int64 = 0
    let schema: String
    let name: String
    let entity: String
    let key: AttachedKey
    /// The fields of a record, the scope's column among them; without the key.
    let columns: [AttachedColumn]
    /// Of those, the ones that devices do not write; `nil` in a table that was attached before there were any.
    let readOnly: [String]?
    let place: Place
    /// The sub-scope of each scope that holds its rows; `nil`: the scope itself.
    let subscope: String?
    /// Whether the scope's column was made for this.
    var addsColumn: Bool
    /// The schema of the log.
    let home: String
    /// Whether the fill notes rows again that the log has, after columns or partitions changed.
    var isRefilled: Bool?

    var sql: String { "\(SQL.quoted(schema)).\(SQL.quoted(name))" }
    /// The table's name, as messages show it.
    var label: String { "\(schema).\(name)" }

    /// The text that a row's scope column has to hold in a scope; `nil` where no row of the table can be in it.
    func scopeText(in scope: Scope) -> String? {
        guard scope.subscope == subscope else { return nil }
        let scope = scope.parent
        switch place {
        case .constant(let name): return name == scope.name ? "" : nil
        case .column(let column, let prefix):
            guard scope.name.utf8.starts(with: prefix.utf8) else { return nil }
            let text = String(decoding: scope.name.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
            return !text.isEmpty && column.mayBeCanonical(text) ? text : nil
        }
    }

    var scopeColumn: AttachedColumn? { place.column }

    func column(_ name: String) -> AttachedColumn? {
        columns.first { $0.name.hasSameBytes(as: name) }
            ?? columns.first { Identifier.isSameName($0.name, name) }
    }

    /// The name of a row's scope, as an expression over the row under an alias.
    func scopeName(of row: String) -> String {
        switch place {
        case .constant(let name): SQL.literal(name + suffix)
        case .column(let column, let prefix):
            ["\(SQL.literal(prefix)) || (\(row).\(column.sql))::text", suffix.isEmpty ? nil : SQL.literal(suffix)]
                .compactMap { $0 }.joined(separator: " || ")
        }
    }

    /// Whether an expression is the name of a scope that rows may be in: rows of which it is not are in no scope. A
    /// column names scopes, never sub-scopes.
    func isScope(_ name: String) -> String {
        "\(name) ~ '^[A-Za-z0-9._:@-]{1,\(Identifier.scopeLimit - suffix.utf8.count)}\(suffix)$'"
    }

    private var suffix: String { subscope.map { "\(Scope.subscopeMark)\($0)" } ?? "" }
}

/// The tables that are attached, as a transaction sees them: while it runs, none is added and none is taken away,
/// since that needs a lock which this reading forbids.
struct AttachedTables: Sendable {
    static let none = AttachedTables()

    private var tables: [AttachedTable] = []

    var isEmpty: Bool { tables.isEmpty }

    subscript(entity: String) -> AttachedTable? {
        tables.first { Identifier.isSameName($0.entity, entity) }
    }
    subscript(id: Int64) -> AttachedTable? { tables.first { $0.id == id } }

    private init() {}

    static let all = Request(Statement("attached", "SELECT id, definition FROM attached_table ORDER BY id"))

    init(_ answer: QueryResult?) throws {
        guard let answer else { return }
        tables = try (0..<answer.count).map { try Self.table(answer, $0) }
    }

    /// A row that begins with an attached table's number and definition.
    static func table(_ answer: QueryResult, _ row: Int) throws -> AttachedTable {
        try Definitions.table(try answer.integer(row, 0), answer.array(row, 1) ?? [])
    }

    /// `capture` is a queue of the records that other programs have written, without their fields. A note with the
    /// scope `''` stands for all records that the log has of the entity; its `at_…` columns say how far they have been
    /// noted one by one. A note is new (`is_new`) where the row was inserted, or found when the table was attached.
    static let schema = [
        """
        CREATE TABLE attached_table (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, entity bytea NOT NULL UNIQUE,
            relation text COLLATE "C" NOT NULL UNIQUE, definition bytea NOT NULL, filled_to text,
            is_filled boolean NOT NULL DEFAULT false)
        """,
        """
        CREATE TABLE capture (
            id bigint GENERATED ALWAYS AS IDENTITY, table_id bigint NOT NULL, scope text COLLATE "C" NOT NULL,
            record text, is_new boolean NOT NULL DEFAULT false,
            at_scope text COLLATE "C", at_record bytea, at_version bigint, PRIMARY KEY (scope, id))
        WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000)
        """,
    ]
}

/// Definitions that were read before, by their bytes: a commit should not parse them again.
private enum Definitions {
    private static let limit = 1000
    private static let tables = Guarded<[[UInt8]: AttachedTable]>([:])

    static func table(_ id: Int64, _ bytes: [UInt8]) throws -> AttachedTable {
        var table = try tables.withLock { tables in
            if let table = tables[bytes] { return table }
            guard let table = try? JSONDecoder().decode(AttachedTable.self, from: Data(bytes)) else {
                throw PostgresError(.schema, "an attached table was described by a newer Tidemark")
            }
            if tables.count >= limit { tables = [:] }
            tables[bytes] = table
            return table
        }
        table.id = id
        return table
    }
}
