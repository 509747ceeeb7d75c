import TidemarkServer

/// A table as PostgreSQL's catalogue has it.
struct CatalogueTable {
    struct Column {
        let name: String
        /// The type's name in `pg_catalog`; `nil` for one that is not there and no enumeration.
        let type: String?
        /// As the type stands in a statement.
        let typeSQL: String
        let isWritable: Bool
        let isKey: Bool
        let isDeterministic: Bool

        /// As it travels; `nil` where it cannot.
        var attached: AttachedColumn? {
            guard let type, let form = ColumnForm(type: type) ?? (type == "enum" ? .text : nil) else { return nil }
            let isText = ["text", "varchar", "bpchar"].contains(type)
            return AttachedColumn(name: name, type: isText ? "text" : typeSQL, form: form, isWritable: isWritable)
        }
    }

    let schema: String
    let name: String
    let columns: [Column]
    /// Why triggers would not do; `nil` where they do.
    private let flaw: String?
    private let isOwner: Bool
    private let keyColumns: Int64
    private let isKeyDeferrable: Bool

    private static let find = Statement(
        "find table",
        """
        SELECT c.oid, n.nspname::text, c.relname::text,
            CASE WHEN c.relkind <> 'r' THEN 'it is no ordinary table'
                WHEN c.relpersistence <> 'p' THEN 'it is temporary or unlogged, and may lose rows without a word'
                WHEN c.relhassubclass OR EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid)
                    THEN 'it inherits, or is inherited from'
                WHEN n.nspname IN ('pg_catalog', 'information_schema', current_schema()) THEN 'it is not yours'
                WHEN EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid)
                    THEN 'it has rules, which make something else of what is written'
                WHEN row_security_active(c.oid) THEN 'its row security would hide rows from the server' END,
            pg_has_role(c.relowner, 'USAGE'),
            (SELECT coalesce(max(i.indnkeyatts), 0) FROM pg_index i
                WHERE i.indrelid = c.oid AND i.indisprimary)::bigint,
            EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND NOT i.indimmediate)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
          AND (n.nspname || '.' || c.relname = $1 OR (n.nspname = 'public' AND c.relname = $1))
        """)
    private static let columns = Statement(
        "table columns",
        """
        SELECT a.attname::text,
            CASE WHEN t.typtype = 'e' THEN 'enum'
                WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname::text END,
            format_type(a.atttypid, NULL), a.attgenerated = '' AND a.attidentity <> 'a',
            EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary
                AND a.attnum = ANY (i.indkey)),
            coalesce((SELECT l.collisdeterministic FROM pg_collation l WHERE l.oid = a.attcollation), true)
        FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
        """)

    /// - Throws: ``TableError`` where there is none, or more than one.
    init(_ session: Session, named name: String) throws {
        let answer = try session.ask(Self.find, .text(name))
        guard answer.count == 1 else {
            throw TableError(
                .tableUnknown,
                answer.count == 0 ? "there is no table '\(name)'" : "more than one table goes by the name '\(name)'",
                hint: "name it as SCHEMA.TABLE, without quotes and in the case that the catalogue has")
        }
        schema = answer.text(0, 1)
        self.name = answer.text(0, 2)
        flaw = answer.isNull(0, 3) ? nil : answer.text(0, 3)
        isOwner = answer.flag(0, 4)
        keyColumns = try answer.integer(0, 5)
        isKeyDeferrable = answer.flag(0, 6)
        let list = try session.ask(Self.columns, .integer(try answer.integer(0, 0)))
        columns = (0..<list.count).map { row in
            Column(
                name: list.text(row, 0), type: list.isNull(row, 1) ? nil : list.text(row, 1),
                typeSQL: list.text(row, 2), isWritable: list.flag(row, 3), isKey: list.flag(row, 4),
                isDeterministic: list.flag(row, 5))
        }
    }

    var label: String { "\(schema).\(name)" }

    var sql: String { "\(SQL.quoted(schema)).\(SQL.quoted(name))" }

    func column(_ name: String) throws(TableError) -> Column {
        if let column = columns.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) { return column }
        throw TableError(
            .columnUnknown, "\(label) has no column '\(name)'",
            hint: "it has \(columns.map(\.name).joined(separator: ", "))")
    }

    func check() throws(TableError) {
        if let flaw {
            throw TableError(
                .tableUnsupported, "\(label) cannot be attached: \(flaw)",
                hint: "attach an ordinary table that the server's role sees whole")
        }
        guard isOwner else {
            throw TableError(
                .notOwner, "the role of --store does not own \(label), and only its owner can put a trigger on it",
                hint: "GRANT the owner's role to it, or name the owner in --store")
        }
    }

    /// The primary key, as the id of a record.
    func key() throws(TableError) -> AttachedColumn {
        let allowed = ["int2", "int4", "int8", "text", "varchar", "uuid"]
        guard keyColumns == 1, let column = columns.first(where: \.isKey) else {
            throw TableError(
                .keyUnsupported,
                keyColumns == 0 ? "\(label) has no primary key" : "\(label) has a primary key of \(keyColumns) columns",
                hint: "a record has one id: give the table a primary key of one column")
        }
        guard !isKeyDeferrable else {
            throw TableError(
                .keyUnsupported, "the primary key of \(label) is DEFERRABLE: no row could be written by it",
                hint: "make it anew without DEFERRABLE")
        }
        guard let type = column.type, allowed.contains(type), column.isDeterministic, let key = column.attached else {
            throw TableError(
                .keyUnsupported,
                "the key \(column.name) of \(label) is \(column.typeSQL), which cannot be a record's id",
                hint: "a key is a smallint, integer, bigint, text, varchar or uuid, and equal only where its bytes are")
        }
        return key
    }

    /// The error for a plan that names no column: a table may hold more than its devices should see.
    func columnsNotNamed() -> TableError {
        let names = columns.filter { !$0.isKey }.map(\.name)
        let sensitive = names.filter { SensitiveName($0) != nil }
        let warning =
            sensitive.isEmpty ? "" : "; \(sensitive.joined(separator: ", ")) should perhaps stay on the server"
        return TableError(
            .columnsNotNamed, "say which columns of \(label) travel: it has \(names.joined(separator: ", "))\(warning)",
            hint: "--read a,b to the devices, --write c both ways, or --all-columns")
    }

    /// The columns that travel.
    func fields(_ names: [String]?) throws(TableError) -> [AttachedColumn] {
        let chosen: [Column]
        if let names {
            var list: [Column] = []
            for name in names { list.append(try column(name)) }
            chosen = list
        } else {
            chosen = columns
        }
        var fields: [AttachedColumn] = []
        for column in chosen where !column.isKey {
            guard let field = column.attached, !column.name.hasPrefix("$") else {
                throw TableError(
                    .columnUnsupported,
                    "the column \(column.name) of \(label) is \(column.typeSQL), whose values cannot travel",
                    hint: "leave it out: --read and --write name those that travel")
            }
            let others = columns.filter(\.isKey) + chosen
            if let other = others.first(where: { $0.name != column.name && Identifier.isSameName($0.name, column.name) }
            ) {
                throw TableError(
                    .columnUnsupported,
                    "the columns \(other.name) and \(column.name) of \(label) are one column on a device",
                    hint: "leave one of them out: --read and --write name those that travel")
            }
            fields.append(field)
        }
        return fields
    }

    func scopeColumn(_ name: String) throws(TableError) -> AttachedColumn {
        let allowed = ["int2", "int4", "int8", "text", "varchar", "uuid"]
        let column = try column(name)
        guard let type = column.type, allowed.contains(type), column.isDeterministic, let found = column.attached,
            found.isWritable
        else {
            throw TableError(
                .columnUnsupported, "the column \(name) of \(label) is \(column.typeSQL), which cannot name a scope",
                hint: "a scope's column is a smallint, integer, bigint, text, varchar or uuid that is not computed")
        }
        return found
    }
}
