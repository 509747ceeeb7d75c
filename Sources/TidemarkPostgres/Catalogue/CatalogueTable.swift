import TidemarkServer

/// A table as PostgreSQL's catalogue has it.
struct CatalogueTable {
    struct Column {
        let name: String
        /// The type beneath the type's domains: its name in `pg_catalog`, or `enum`, `citext`, `array`, `numbers` (for
        /// a type that may hold any number of decimal numbers) or `other`; `nil` for a type without values of its own.
        let kind: String?
        /// As the type stands in a statement.
        let typeSQL: String
        /// The type's name, as messages show it.
        let typeName: String
        let isWritable: Bool
        /// Its place in the primary key, from 1; 0 outside it.
        let keyPlace: Int64
        let refersToRows: Bool
        let isDeterministic: Bool
        /// The schema of the operators that the key's index compares by.
        let operators: String

        var isKey: Bool { keyPlace > 0 }

        /// As it travels; `nil` where it cannot.
        var attached: AttachedColumn? {
            guard let kind, !Self.unreadable.contains(kind) else { return nil }
            let isText = ["text", "varchar", "bpchar"].contains(kind)
            // A `character` without a length is one letter, and a key of blanks is found as it is compared.
            let type = isText ? (kind == "bpchar" && isKey ? "bpchar" : "text") : typeSQL
            var column = AttachedColumn(name: name, type: type, form: ColumnForm(kind: kind), isWritable: isWritable)
            column.base = kind
            if isKey || refersToRows { column.namesRows = true }
            if isKey, operators != "pg_catalog" { column.operators = operators }
            return column
        }

        /// Values of these types are names of the catalogue: reading them would tell a device which names there are.
        private static let unreadable: Set<String> = [
            "regclass", "regcollation", "regconfig", "regdictionary", "regnamespace", "regoper", "regoperator",
            "regproc", "regprocedure", "regrole", "regtype",
        ]
    }

    let schema: String
    let name: String
    let columns: [Column]
    /// Its partitions and theirs, as they stand in a statement.
    let partitions: [String]
    /// The partitions that have no TRUNCATE trigger of ours yet.
    let newPartitions: [String]
    /// Why triggers would not do; `nil` where they do.
    private let flaw: String?
    private let isOwner: Bool
    private let isKeyDeferrable: Bool

    private static let find = Statement(
        "find table",
        """
        SELECT c.oid, n.nspname::text, c.relname::text,
            CASE WHEN c.relkind NOT IN ('r', 'p') THEN 'it is no ordinary table'
                WHEN c.relpersistence <> 'p' THEN 'it is temporary or unlogged, and may lose rows without a word'
                WHEN c.relispartition THEN 'it is a partition: attach the table that it is a part of'
                WHEN c.relkind = 'r' AND (c.relhassubclass
                    OR EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid))
                    THEN 'it inherits, or is inherited from'
                WHEN EXISTS (SELECT 1 FROM pg_partition_tree(c.oid) p JOIN pg_class f ON f.oid = p.relid
                    WHERE f.relkind = 'f' OR f.relpersistence <> 'p')
                    THEN 'one of its partitions is foreign or unlogged'
                WHEN n.nspname IN ('pg_catalog', 'information_schema', current_schema()) THEN 'it is not yours'
                WHEN EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid)
                    THEN 'it has rules, which make something else of what is written'
                WHEN row_security_active(c.oid) THEN 'its row security would hide rows from the server' END,
            pg_has_role(c.relowner, 'USAGE'),
            EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND NOT i.indimmediate)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
          AND (n.nspname || '.' || c.relname = $1 OR (n.nspname = 'public' AND c.relname = $1))
        """)
    private static let columns = Statement(
        "table columns",
        """
        SELECT a.attname::text,
            CASE WHEN t.typtype = 'p' THEN NULL WHEN t.typtype = 'e' THEN 'enum'
                WHEN t.typtype IN ('r', 'm', 'c') OR t.typcategory = 'A' AND (
                    SELECT e.typtype IN ('d', 'r', 'm', 'c') OR e.typname IN ('numeric', 'jsonb')
                    FROM pg_type e WHERE e.oid = t.typelem) THEN 'numbers'
                WHEN t.typcategory = 'A' THEN 'array'
                WHEN t.typnamespace = 'pg_catalog'::regnamespace OR t.typname = 'citext' THEN t.typname::text
                ELSE 'other' END,
            format_type(a.atttypid, -1), format_type(a.atttypid, a.atttypmod),
            a.attgenerated = '' AND a.attidentity <> 'a', coalesce(k.place, 0),
            EXISTS (SELECT 1 FROM pg_constraint f
                WHERE f.contype = 'f' AND f.conrelid = a.attrelid AND a.attnum = ANY (f.conkey)),
            coalesce((SELECT l.collisdeterministic FROM pg_collation l WHERE l.oid = a.attcollation), true),
            coalesce(k.operators, 'pg_catalog')
        FROM pg_attribute a \(TableRules.baseType) JOIN pg_type t ON t.oid = base.type
        LEFT JOIN LATERAL (
            SELECT u.place, n.nspname::text AS operators FROM pg_index i
            CROSS JOIN LATERAL unnest(i.indkey::smallint[], i.indclass::oid[]) WITH ORDINALITY AS u(own, class, place)
            JOIN pg_opclass o ON o.oid = u.class
            JOIN pg_amop m ON m.amopfamily = o.opcfamily AND m.amopstrategy = 3
                AND m.amoplefttype = o.opcintype AND m.amoprighttype = o.opcintype
            JOIN pg_operator p ON p.oid = m.amopopr JOIN pg_namespace n ON n.oid = p.oprnamespace
            WHERE i.indrelid = a.attrelid AND i.indisprimary AND u.own = a.attnum AND u.place <= i.indnkeyatts
            LIMIT 1) AS k ON true
        WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
        """)

    private static let parts = Statement(
        "table partitions",
        """
        SELECT format('%I.%I', n.nspname, c.relname),
            EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'tidemark_truncate')
        FROM pg_partition_tree($1::bigint::oid) p
        JOIN pg_class c ON c.oid = p.relid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE p.level > 0 ORDER BY 1
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
        isKeyDeferrable = answer.flag(0, 5)
        let parts = try session.ask(Self.parts, .integer(try answer.integer(0, 0)))
        partitions = (0..<parts.count).map { parts.text($0, 0) }
        newPartitions = (0..<parts.count).filter { !parts.flag($0, 1) }.map { parts.text($0, 0) }
        let list = try session.ask(Self.columns, .integer(try answer.integer(0, 0)))
        columns = try (0..<list.count).map { row in
            Column(
                name: list.text(row, 0), kind: list.isNull(row, 1) ? nil : list.text(row, 1),
                typeSQL: list.text(row, 2), typeName: list.text(row, 3), isWritable: list.flag(row, 4),
                keyPlace: try list.integer(row, 5), refersToRows: list.flag(row, 6),
                isDeterministic: list.flag(row, 7), operators: list.text(row, 8))
        }
    }

    var label: String { "\(schema).\(name)" }

    var sql: String { "\(SQL.quoted(schema)).\(SQL.quoted(name))" }

    func column(_ name: String) throws(TableError) -> Column {
        if let column = columns.first(where: { $0.name.hasSameBytes(as: name) }) { return column }
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
    func key() throws(TableError) -> AttachedKey {
        let found = columns.filter(\.isKey).sorted { $0.keyPlace < $1.keyPlace }
        guard !found.isEmpty else {
            throw TableError(
                .keyUnsupported, "\(label) has no primary key",
                hint: "a record has one id: give the table a primary key")
        }
        guard !isKeyDeferrable else {
            throw TableError(
                .keyUnsupported, "the primary key of \(label) is DEFERRABLE: no row could be written by it",
                hint: "make it anew without DEFERRABLE")
        }
        var key: [AttachedColumn] = []
        for column in found {
            guard let kind = column.kind, AttachedColumn.namingKinds.contains(kind), column.isDeterministic,
                let attached = column.attached
            else {
                throw TableError(
                    .keyUnsupported,
                    "the key \(column.name) of \(label) is \(column.typeName), which cannot be a record's id",
                    hint: "a key is made of integers, numeric, boolean, texts, UUIDs, dates, times, labels, addresses, "
                        + "bits or bytes")
            }
            key.append(attached)
        }
        return AttachedKey(columns: key)
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
                    "the column \(column.name) of \(label) is \(column.typeName), whose values cannot travel",
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
        guard let kind = column.kind, allowed.contains(kind), column.isDeterministic, let found = column.attached,
            found.isWritable
        else {
            throw TableError(
                .columnUnsupported, "the column \(name) of \(label) is \(column.typeName), which cannot name a scope",
                hint: "a scope's column is a smallint, integer, bigint, text, varchar or uuid that is not computed")
        }
        return found
    }
}
