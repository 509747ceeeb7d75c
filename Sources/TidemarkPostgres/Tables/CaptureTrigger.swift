/// The objects that are put into the operator's table, and taken out again: two triggers, and the function behind them.
extension AttachedTable {
    var function: String { "\(home).capture_\(id)" }

    /// The function belongs to the role that attaches the table, so that other roles need no rights in the log's
    /// schema. It notes which record to look at in which scopes, and nothing else: no lock is taken, and no version.
    private var body: String {
        """
        DECLARE place text;
        BEGIN
            IF TG_OP = 'TRUNCATE' THEN
                INSERT INTO \(home).capture (table_id, scope) VALUES (\(id), '');
                RETURN NULL;
            END IF;
            IF TG_OP = 'INSERT' THEN
                \(note("NEW", isNew: true))
            ELSIF TG_OP = 'DELETE' THEN
                \(note("OLD"))
            ELSIF NEW OPERATOR(pg_catalog.*<>) OLD THEN
                \(note("NEW"))
                IF NEW.\(key.sql) IS DISTINCT FROM OLD.\(key.sql)
                    OR \(scopeName(of: "NEW")) IS DISTINCT FROM \(scopeName(of: "OLD"))
                THEN
                    \(note("OLD"))
                END IF;
            END IF;
            RETURN NULL;
        END
        """
    }

    private func note(_ row: String, isNew: Bool = false) -> String {
        let insert = "INSERT INTO \(home).capture (table_id, scope, record, is_new)"
        return """
            place := \(scopeName(of: row));
                    IF \(isScope("place")) THEN
                        \(insert) VALUES (\(id), place, \(row).\(key.sql)::text, \(isNew));
                    END IF;
            """
    }

    /// The triggers also run for rows that a replication or a restore brings (`ENABLE ALWAYS`).
    var installation: [String] {
        [
            """
            CREATE FUNCTION \(function)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
            SET search_path = pg_catalog, pg_temp AS \(SQL.literal(body))
            """,
            "REVOKE ALL ON FUNCTION \(function)() FROM PUBLIC",
            """
            CREATE TRIGGER tidemark_capture AFTER INSERT OR UPDATE OR DELETE ON \(sql)
            FOR EACH ROW EXECUTE FUNCTION \(function)()
            """,
            """
            CREATE TRIGGER tidemark_truncate AFTER TRUNCATE ON \(sql)
            FOR EACH STATEMENT EXECUTE FUNCTION \(function)()
            """,
            "ALTER TABLE \(sql) ENABLE ALWAYS TRIGGER tidemark_capture",
            "ALTER TABLE \(sql) ENABLE ALWAYS TRIGGER tidemark_truncate",
        ]
    }

    /// The function takes its triggers along, whatever the table's name is by now, and where it is there at all.
    func removal(from table: String?, dropsColumn: Bool) -> [String] {
        var statements = ["DROP FUNCTION IF EXISTS \(function)() CASCADE"]
        if let table, dropsColumn, addsColumn, let column = scopeColumn {
            statements.append("ALTER TABLE \(table) DROP COLUMN IF EXISTS \(column.sql)")
        }
        return statements
    }
}
