import Foundation

/// The log's tables. Rows of a scope have a key that begins with it and are reached by its name alone, so that the
/// tables can be partitioned or distributed by it. Other rows are in small tables of the whole store (decision 7).
///
/// Names that are ASCII by their grammar are `text` in the order of their bytes; whatever else people write is `bytea`,
/// since PostgreSQL's `text` depends on the database's encoding and holds no NUL.
enum Schema {
    /// Brings the schema to the present version, one node at a time, and returns the store's token key, and into how
    /// many parts its tables are divided.
    ///
    /// - Parameters:
    ///   - partitions: of tables that are made now.
    ///   - newKey: the token key of a store that is made now.
    static func prepare(
        _ session: Session, _ name: String, _ partitions: Partitions, newKey: [UInt8]
    ) throws -> (tokenKey: [UInt8], partitions: Int) {
        try session.transact { session in
            _ = try session.ask(lock, .text(name))
            if try !session.ask(isThere, .text(name)).flag(0, 0) { try session.write(createSchema(name)) }
            if try session.ask(hasTables).isNull(0, 0) {
                try checkRole(session, name)
                try create(session, partitions, newKey)
            }
            let answer = try session.ask(look)
            guard answer.count == 1, try (1...newest).contains(answer.integer(0, 0)), let key = answer.array(0, 1),
                key.count == 32
            else {
                throw PostgresError(.schema, "the schema \(name) is not that of a store, or a newer Tidemark's")
            }
            if try answer.integer(0, 0) < 2 { try countSizes(session) }
            if try answer.integer(0, 0) < 3 { try dropNumbers(session) }
            if try answer.integer(0, 0) < 4 { try countWindows(session) }
            if try !session.ask(isErasable).flag(0, 0) { try makeErasable(session) }
            if try !session.ask(hasHooks).flag(0, 0) { try makeHooks(session) }
            if try !session.ask(isTold).flag(0, 0) { try session.write(tell) }
            if try !session.ask(hasRemedies).flag(0, 0) { try session.write(remedy) }
            let parts = Int(try session.ask(countPartitions).integer(0, 0))
            if try !session.ask(hasBlobs).flag(0, 0) { try makeBlobs(session, Partitions(count: parts)) }
            if try session.ask(hasNumberedPieces).flag(0, 0) { try placePieces(session) }
            return (key, parts)
        }
    }

    private static let version: Int64 = 4
    /// The form of a store in which a scope was erased (`Erasing.mark`).
    static let newest: Int64 = 5

    private static let lock = Statement(
        "migrate", "SELECT pg_advisory_xact_lock(hashtextextended('tidemark schema ' || $1, 0))")
    private static let isThere = Statement(
        "schema", "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)")
    private static let hasTables = Statement("tables", "SELECT to_regclass('meta')::oid")
    private static let look = Statement(
        "look", "SELECT number, bytes FROM meta WHERE key = 'schema'")

    private static let isFormer = Statement(
        "former schema",
        """
        SELECT bool_or(n.nspname = $1) IS NOT TRUE AND bool_or(n.nspname = $2) IS TRUE
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'attached_table'
        """)

    /// Whether a store is in the schema of the former name, and none in that of the new one.
    static func isFormer(_ session: Session) throws -> Bool {
        let names = [PostgresStore.Configuration.newSchema, PostgresStore.Configuration.formerSchema]
        return try session.transact { try $0.ask(isFormer, .text(names[0]), .text(names[1])).flag(0, 0) }
    }

    private static let isRole = Statement("role", "SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1)")

    /// A role's `search_path` begins with the schema of its own name: tables that it makes later would get in among
    /// the log's, and what it calls `device` or `change` would be the log's own.
    private static func checkRole(_ session: Session, _ name: String) throws {
        guard try session.ask(isRole, .text(name)).flag(0, 0) else { return }
        throw PostgresError(
            .schema,
            "a role is called \(name) like the log's schema, and would make its own tables in it: rename the role "
                + "(ALTER ROLE \(name) RENAME TO …)")
    }

    private static let countPartitions = Statement(
        "partitions", "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('change')")

    /// The name was checked: it needs no quotes.
    private static func createSchema(_ name: String) -> Statement {
        Statement("create schema", "CREATE SCHEMA IF NOT EXISTS \(name)")
    }

    private static func create(_ session: Session, _ partitions: Partitions, _ key: [UInt8]) throws {
        for (index, sql) in (statements(partitions) + AttachedTables.schema).enumerated() {
            try session.write(Statement("first \(index)", sql))
        }
        try Distribution.apply(session, partitions)
        try session.write(
            Statement("first meta", "INSERT INTO meta VALUES ('schema', $1, $2), ('last_rejection', 0, NULL)"),
            .integer(version), .bytes(key))
    }

    /// Version 2: what scopes keep is counted. Nodes of version 1 must have ended: they would go on without counting.
    private static func countSizes(_ session: Session) throws {
        let columns = ["live_rows", "live_bytes"].map { "ADD COLUMN \($0) bigint NOT NULL DEFAULT 0" }
        let statements = [
            "ALTER TABLE scope \(columns.joined(separator: ", "))",
            """
            UPDATE scope SET (live_rows, live_bytes) = (
                SELECT \(SizeColumns.sum) FROM change
                WHERE change.scope = scope.name AND superseded_by IS NULL)
            """,
            "UPDATE meta SET number = 2 WHERE key = 'schema'",
        ]
        for (index, sql) in statements.enumerated() { try session.write(Statement("second \(index)", sql)) }
    }

    /// Version 3: ids are not counted any more. Nodes of version 2 must have ended: they would look for the counter.
    private static func dropNumbers(_ session: Session) throws {
        try session.write(Statement("third 0", "DROP TABLE assigned"))
        try session.write(Statement("third 1", "UPDATE meta SET number = 3 WHERE key = 'schema'"))
    }

    /// Version 4: what is superseded is counted. Nodes of version 3 must have ended: they would go on without counting.
    private static func countWindows(_ session: Session) throws {
        let columns = ["superseded_rows", "superseded_bytes"].map { "ADD COLUMN \($0) bigint NOT NULL DEFAULT 0" }
        let statements = [
            "ALTER TABLE scope \(columns.joined(separator: ", "))", windowIndex,
            """
            UPDATE scope SET (superseded_rows, superseded_bytes) = (
                SELECT \(SizeColumns.sum) FROM change
                WHERE change.scope = scope.name AND superseded_by IS NOT NULL)
            """,
            "UPDATE meta SET number = 4 WHERE key = 'schema'",
        ]
        for (index, sql) in statements.enumerated() { try session.write(Statement("fourth \(index)", sql)) }
    }

    private static let isErasable = Statement(
        "erasable",
        """
        SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('scope') AND attname = 'erased_at')
        """)

    /// Scopes may be erased. Nodes from before pass over the column, and run beside this one until the first erasure.
    private static func makeErasable(_ session: Session) throws {
        // The column comes last: all nodes wait for whoever changes the table that has it.
        for (index, sql) in [aliasIndex, "ALTER TABLE scope ADD COLUMN erased_at bigint"].enumerated() {
            try session.write(Statement("erasable \(index)", sql))
        }
    }

    private static let hasHooks = Statement("hooks", "SELECT to_regclass('hook_told') IS NOT NULL")

    /// What hooks were told, and who may call them. Nodes from before pass over the tables, and run beside this one.
    private static func makeHooks(_ session: Session) throws {
        let statements = [
            """
            CREATE TABLE hook (
                name text COLLATE "C" PRIMARY KEY, holder text NOT NULL, held_until timestamptz NOT NULL,
                place text COLLATE "C" NOT NULL DEFAULT '', is_begun boolean NOT NULL DEFAULT false)
            WITH (fillfactor = 50)
            """,
            """
            CREATE TABLE hook_told (
                told bigint NOT NULL, scope text COLLATE "C" NOT NULL, hook text COLLATE "C" NOT NULL,
                PRIMARY KEY (scope, hook)) WITH (fillfactor = 60)
            """,
        ]
        for (index, sql) in statements.enumerated() { try session.write(Statement("hooks \(index)", sql)) }
        try Distribution.add("hook_told", by: "scope", session)
    }

    private static let hasBlobs = Statement("has blobs", "SELECT to_regclass('blob_scope') IS NOT NULL")

    /// Blobs. Nodes from before know no address of them, and run beside this one.
    private static func makeBlobs(_ session: Session, _ partitions: Partitions) throws {
        for (index, sql) in BlobRows.schema(partitions).enumerated() {
            try session.write(Statement("blobs \(index)", sql))
        }
        for table in BlobRows.tables { try Distribution.add(table, by: "scope", session) }
    }

    private static let hasNumberedPieces = Statement(
        "numbered pieces",
        """
        SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('blob_piece') AND attname = 'number')
        """)

    /// Pieces had numbers, and have the offsets of their first bytes. Nodes from before fail where they look for the
    /// number: they can neither read nor write blobs from here on.
    private static func placePieces(_ session: Session) throws {
        try session.write(Statement("rename pieces", "ALTER TABLE blob_piece RENAME COLUMN number TO start"))
        let scopes = try session.ask(Statement("scopes with pieces", "SELECT scope FROM blob_scope"))
        let place = Statement("place pieces", "UPDATE blob_piece SET start = start * 262144 WHERE scope = $1")
        // A scope at a time: each statement has a limit of time.
        for row in 0..<scopes.count { try session.write(place, .text(scopes.text(row, 0))) }
    }

    private static let isTold = Statement(
        "told",
        """
        SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('device') AND attname = 'reported_at')
        """)

    /// Devices tell of themselves. Nodes from before pass over the columns, and run beside this one.
    private static let tell = Statement(
        "tell", "ALTER TABLE device \(DeviceReports.columns.map { "ADD COLUMN \($0)" }.joined(separator: ", "))")

    private static let hasRemedies = Statement(
        "remedies",
        """
        SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('device') AND attname = 'remedy')
        """)

    /// Operators ask something of devices. Nodes from before pass over the column, and run beside this one.
    private static let remedy = Statement("remedy", "ALTER TABLE device ADD COLUMN remedy bytea")

    /// The index by which an erasure finds ids.
    private static let aliasIndex = "CREATE INDEX alias_scope ON alias (scope, principal)"

    /// The order in which a window that holds too much is ended.
    private static let windowIndex = """
        CREATE INDEX change_window ON change (scope, superseded_by, version) WHERE superseded_by IS NOT NULL
        """

    private static func statements(_ partitions: Partitions) -> [String] {
        [
            """
            CREATE TABLE meta (
                key text COLLATE "C" PRIMARY KEY, number bigint NOT NULL, bytes bytea) WITH (fillfactor = 50)
            """,
            // The last transaction of each connection that writes, for a caller whose commit was not answered.
            """
            CREATE TABLE writer (
                id bigint PRIMARY KEY, batch bigint NOT NULL, used_at timestamptz NOT NULL) WITH (fillfactor = 50)
            """,
            """
            CREATE TABLE scope (
                head bigint NOT NULL, last_time bigint NOT NULL, sweep_floor bigint NOT NULL DEFAULT 0,
                retention_floor bigint NOT NULL DEFAULT 0, lanes bigint NOT NULL DEFAULT 0,
                live_rows bigint NOT NULL DEFAULT 0, live_bytes bigint NOT NULL DEFAULT 0,
                superseded_rows bigint NOT NULL DEFAULT 0, superseded_bytes bigint NOT NULL DEFAULT 0,
                erased_at bigint,
                name text COLLATE "C" PRIMARY KEY, entities bytea NOT NULL DEFAULT '') WITH (fillfactor = 60)
            """,
            """
            CREATE TABLE incarnation (
                start bigint NOT NULL, id bigint NOT NULL, scope text COLLATE "C" NOT NULL,
                PRIMARY KEY (scope, start, id))
            """,
        ] + log(partitions) + devices(partitions) + assigned
    }

    private static func log(_ partitions: Partitions) -> [String] {
        partitions.table(
            "change",
            """
            version bigint NOT NULL, time bigint NOT NULL, superseded_by bigint, superseded_at bigint,
            kind smallint NOT NULL, scope text COLLATE "C" NOT NULL, entity bytea NOT NULL,
            record bytea NOT NULL, payload bytea, field_versions bytea, originals bytea, PRIMARY KEY (scope, version)
            """) + [
                "CREATE UNIQUE INDEX change_record ON change (scope, entity, record, version)",
                """
                CREATE INDEX change_superseded ON change (superseded_at, scope, version)
                WHERE superseded_at IS NOT NULL
                """,
                windowIndex,
            ]
            // The sums over the live records of an entity, kept in step with the log. Sums do not compress.
            + partitions.table(
                "digest",
                """
                scope text COLLATE "C" NOT NULL, entity bytea NOT NULL, sums bytea NOT NULL,
                PRIMARY KEY (scope, entity)
                """, fill: 60) + ["ALTER TABLE digest ALTER sums SET STORAGE EXTERNAL"]
    }

    private static func devices(_ partitions: Partitions) -> [String] {
        // `place` counts the lanes of a scope; `top` is the highest number that a verdict of the lane ever had.
        partitions.table(
            "lane",
            """
            place bigint NOT NULL, number bigint NOT NULL, top bigint NOT NULL, seen_at bigint NOT NULL,
            scope text COLLATE "C" NOT NULL, principal bytea NOT NULL, client text COLLATE "C" NOT NULL,
            lane text COLLATE "C" NOT NULL, PRIMARY KEY (scope, principal, client, lane)
            """, fill: 60) + ["CREATE INDEX lane_device ON lane (principal, client)"]
            + partitions.table(
                "verdict",
                """
                lane bigint NOT NULL, number bigint NOT NULL, version bigint, base_number bigint,
                took_effect boolean NOT NULL, scope text COLLATE "C" NOT NULL, digest bytea NOT NULL,
                members bytea NOT NULL, PRIMARY KEY (scope, lane, number)
                """)
            // The known devices: from which version on deletions are kept for each, and from which on verdicts gave it
            // rows.
            + partitions.table(
                "device",
                """
                version bigint, oldest bigint, seen_at bigint NOT NULL, scope text COLLATE "C" NOT NULL,
                principal bytea NOT NULL, client text COLLATE "C" NOT NULL,
                \(DeviceReports.columns.joined(separator: ", ")), remedy bytea,
                PRIMARY KEY (scope, principal, client)
                """) + [
                "CREATE INDEX device_version ON device (scope, version)",
                "CREATE INDEX device_seen ON device (scope, seen_at)",
                "CREATE INDEX device_name ON device (principal, client)",
            ]
            // Notes on what a user has lately deleted of an entity that has a brake, and, under an empty name, on what
            // he has added to the scope.
            + partitions.table(
                "deletes",
                """
                made_at bigint NOT NULL, scope text COLLATE "C" NOT NULL, principal bytea NOT NULL,
                entity bytea NOT NULL, note bytea NOT NULL, PRIMARY KEY (scope, principal, entity)
                """, fill: 60)
    }

    private static let assigned = [
        // The ids that devices' temporary ids stand for, in all scopes: a row may move from one to another.
        """
        CREATE TABLE alias (
            made_at bigint NOT NULL, scope text COLLATE "C" NOT NULL, principal bytea NOT NULL,
            client text COLLATE "C" NOT NULL, entity bytea NOT NULL, temporary bytea NOT NULL,
            record bytea NOT NULL, PRIMARY KEY (principal, client, entity, temporary))
        """,
        "CREATE INDEX alias_record ON alias (entity, record)",
        "CREATE INDEX alias_age ON alias (made_at)", aliasIndex,
        // Refused edits, for the operator; a bounded list. Numbers are counted in `meta`, so that none comes twice.
        """
        CREATE TABLE rejection (
            id bigint NOT NULL, number bigint NOT NULL, time bigint NOT NULL, is_delete boolean NOT NULL,
            scope text COLLATE "C" NOT NULL, entity bytea NOT NULL, record bytea NOT NULL, fields bytea,
            principal bytea NOT NULL, client bytea NOT NULL, lane bytea NOT NULL, code bytea NOT NULL,
            detail bytea NOT NULL, PRIMARY KEY (scope, id))
        """,
        "CREATE INDEX rejection_number ON rejection (id)",
    ]
}
