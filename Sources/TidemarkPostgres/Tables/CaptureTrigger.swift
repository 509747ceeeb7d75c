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
                IF (\(key.id(of: "NEW"))) IS DISTINCT FROM (\(key.id(of: "OLD")))
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
                        \(insert) VALUES (\(id), place, \(key.id(of: row)), \(isNew));
                    END IF;
            """
    }

    /// Each setting costs each row of other programs a little, so only a key that depends on one has it.
    private var pinned: String {
        let depends = key.columns.contains { [.instant, .moment, .day].contains($0.form) }
        return depends ? " SET DateStyle = 'ISO, YMD' SET TimeZone = 'UTC'" : ""
    }

    /// The triggers also run for rows that a replication or a restore brings (`ENABLE ALWAYS`). PostgreSQL gives each
    /// partition the row's trigger, also those that are made later.
    func installation(partitions: [String]) -> [String] {
        let rows = ([sql] + partitions).map { "ALTER TABLE ONLY \($0) ENABLE ALWAYS TRIGGER tidemark_capture" }
        return makingFunction + [
            """
            CREATE TRIGGER tidemark_capture AFTER INSERT OR UPDATE OR DELETE ON \(sql)
            FOR EACH ROW EXECUTE FUNCTION \(function)()
            """
        ] + rows + makingTruncateTriggers(on: [sql] + partitions)
    }

    var makingFunction: [String] {
        [
            """
            CREATE OR REPLACE FUNCTION \(function)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
            SET search_path = pg_catalog, pg_temp\(pinned) AS \(SQL.literal(body))
            """,
            "REVOKE ALL ON FUNCTION \(function)() FROM PUBLIC",
        ]
    }

    /// A partition that is emptied by itself says so by a trigger of its own.
    func makingTruncateTriggers(on tables: [String]) -> [String] {
        tables.flatMap { table in
            [
                """
                CREATE TRIGGER tidemark_truncate AFTER TRUNCATE ON \(table)
                FOR EACH STATEMENT EXECUTE FUNCTION \(function)()
                """,
                "ALTER TABLE ONLY \(table) ENABLE ALWAYS TRIGGER tidemark_truncate",
            ]
        }
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
