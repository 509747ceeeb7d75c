import TidemarkServer
import TidemarkWire

/// The rules of an attached table, as PostgreSQL's catalogue has them now: how much its columns hold, and to what its
/// rows refer.
/// Both may change while the table is attached, so a transaction asks before its first write.
struct TableRules {
    /// By the names of the columns.
    let widths: [String: ColumnWidth]
    let references: [TableReference]

    private static let columns = Statement(
        "table widths",
        """
        SELECT a.attname::text, format_type(base.type, NULL), base.modifier::bigint
        FROM pg_attribute a \(baseType) WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
        """)
    /// Joins the type that is beneath a column's domains, with its length.
    static let baseType = """
        CROSS JOIN LATERAL (
            WITH RECURSIVE beneath(type, modifier, depth) AS (
                SELECT a.atttypid, a.atttypmod, 0
                UNION ALL SELECT d.typbasetype, d.typtypmod, b.depth + 1
                FROM beneath b JOIN pg_type d ON d.oid = b.type AND d.typtype = 'd')
            SELECT type, modifier FROM beneath ORDER BY depth DESC LIMIT 1) AS base
        """
    /// A row for each column of each foreign key; what PostgreSQL itself compares by is what is compared by here.
    private static let foreignKeys = Statement(
        "table references",
        """
        SELECT c.conname::text, format('%I.%I', n.nspname, r.relname),
            (SELECT p.proname::text FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
                JOIN pg_namespace h ON h.oid = p.pronamespace
                WHERE t.tgrelid = c.confrelid AND t.tgname = 'tidemark_capture' AND h.nspname = $2),
            a.attname::text, b.attname::text,
            (SELECT format('OPERATOR(%I.%s)', s.nspname, o.oprname)
                FROM pg_operator o JOIN pg_namespace s ON s.oid = o.oprnamespace WHERE o.oid = k.operator),
            (SELECT format('COLLATE %I.%I', s.nspname, l.collname)
                FROM pg_collation l JOIN pg_namespace s ON s.oid = l.collnamespace WHERE l.oid = b.attcollation),
            a.attgenerated <> ''
        FROM pg_constraint c JOIN pg_class r ON r.oid = c.confrelid JOIN pg_namespace n ON n.oid = r.relnamespace
        CROSS JOIN LATERAL unnest(c.conkey, c.confkey, c.conpfeqop) WITH ORDINALITY AS k(own, other, operator, place)
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.own
        JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = k.other
        WHERE c.contype = 'f' AND c.conrelid = to_regclass($1) AND c.conparentid = 0
        ORDER BY c.conname, c.oid, k.place
        """)

    /// Asks in one round trip, also whether the table is where its name leads.
    ///
    /// - Throws: ``RowRefusal`` where it is not.
    init(of table: AttachedTable, _ session: Session) throws {
        let answers = try session.ask([
            table.isInPlace, Request(Self.columns, .text(table.sql)),
            Request(Self.foreignKeys, .text(table.sql), .text(table.home)),
        ])
        guard answers[0].flag(0, 0) else { throw RowRefusal(AttachedTable.notInPlace) }
        var widths: [String: ColumnWidth] = [:]
        for row in 0..<answers[1].count {
            widths[answers[1].text(row, 0)] = ColumnWidth(
                type: answers[1].text(row, 1), modifier: Int(clamping: try answers[1].integer(row, 2)))
        }
        self.widths = widths
        references = (0..<answers[2].count).reduce(into: []) { list, row in
            let answer = answers[2]
            if list.last?.name != answer.text(row, 0) {
                list.append(
                    TableReference(
                        name: answer.text(row, 0), parent: answer.text(row, 1),
                        parentNumber: answer.isNull(row, 2)
                            ? nil : Int64(answer.text(row, 2).dropFirst("capture_".count))))
            }
            list[list.count - 1].pairs.append(
                TableReference.Pair(
                    own: answer.text(row, 3), other: answer.text(row, 4), equals: answer.text(row, 5),
                    collation: answer.text(row, 6), isComputed: answer.flag(row, 7)))
        }
    }

    /// The parameter that stands for a value in a statement.
    ///
    /// - Throws: ``RowRefusal`` for a value that the column cannot hold.
    func parameter(_ value: Value, for column: AttachedColumn) throws -> Parameter {
        guard let parameter = column.form.parameter(value) else { throw RowRefusal(valueOf: column, nil) }
        if case .text(let text) = parameter { try check(text, for: column) }
        return parameter
    }

    func check(_ text: String, for column: AttachedColumn) throws {
        guard let flaw = ValueBounds.flaw(of: text, in: column, widths[column.name]) else { return }
        throw RowRefusal(valueOf: column, flaw)
    }
}

/// A foreign key of an attached table.
struct TableReference {
    /// A column and the one that it refers to.
    struct Pair {
        let own: String
        let other: String
        /// The operator between the other one and the own one.
        let equals: String
        /// Of the other one; empty for a type without any.
        let collation: String
        /// Whether the database makes the own one of columns that are written.
        let isComputed: Bool
    }

    let name: String
    /// As it stands in a statement.
    let parent: String
    /// The number of the attached table that it refers to; `nil` where that is not attached.
    let parentNumber: Int64?
    var pairs: [Pair] = []

    /// Whether a write of some columns chooses the row that is referred to. The row that the scope's column refers to
    /// is chosen by the grant of the scope.
    func isChosen(bySetting columns: Set<String>, scopeColumn: String?) -> Bool {
        pairs.contains { $0.own != scopeColumn && ($0.isComputed || columns.contains($0.own)) }
    }
}
