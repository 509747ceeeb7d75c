public import TidemarkServer

extension PostgresStore: TableStore {
    /// Reads names along the list's key.
    ///
    /// - Throws: `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func capturedScopes(after scope: Scope?, limit: Int) async throws -> [Scope] {
        try await reads.run { line in try CaptureQueue.scopes(line, after: scope, limit: limit) }
    }

    /// Puts triggers on a table, so that its rows are records of an entity from here on: what any program writes to it
    /// appears in the log, and what devices send lands in it. ``fill(_:limit:)`` notes the rows that are there already.
    ///
    /// - Throws: ``TableError`` where the table cannot be attached; `StoreUnavailable` where another program holds it;
    ///   ``PostgresError`` for the rest.
    public func attach(_ plan: TablePlan) async throws -> TableStatus {
        try await reads.run { line in
            try line.write { session in
                let table = try Attaching(plan: plan).run(session)
                return TableStatus(table, isFilled: false, notes: 0)
            }
        }
    }

    /// Notes the next `limit` rows that were there before the table was attached; the server takes them over like what
    /// is written now (`SyncServer.drainCapture()`).
    ///
    /// - Throws: ``TableError`` where no table of the entity is attached, or its rows cannot be read in order;
    ///   `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func fill(_ entity: String, limit: Int = 2000) async throws -> FillStep {
        try await reads.run { line in
            try line.write { session in
                try Filling.step(session, TableStatus.table(of: entity, session), limit: max(1, limit))
            }
        }
    }

    /// The tables that are attached.
    ///
    /// - Throws: `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func attachedTables() async throws -> [TableStatus] {
        try await reads.run { line in try line.read { session in try TableStatus.all(session) } }
    }

    /// The tables of a schema, in the order of their names, without partitions and whatever else no trigger can be on.
    ///
    /// - Throws: `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func tables(inSchema schema: String) async throws -> [FoundTable] {
        try await reads.run { line in try line.read { session in try FoundTable.all(session, schema) } }
    }

    /// Takes the triggers off a table again. Its rows and the log stay as they are; what is noted and not taken over is
    /// forgotten, so let `SyncServer.drainCapture()` run before. Answers how many writes that were.
    ///
    /// - Parameters:
    ///   - entity: the entity that its rows are records of.
    ///   - dropsScopeColumn: whether the scope's column goes too, where it was made for this.
    /// - Throws: ``TableError`` `not_attached`; `StoreUnavailable` for what passes by itself; ``PostgresError`` for the
    ///   rest.
    @discardableResult
    public func detach(_ entity: String, dropsScopeColumn: Bool = false) async throws -> Int {
        try await reads.run { line in
            try line.write { session in
                let table = try TableStatus.table(of: entity, session)
                return try Detaching.run(session, table, dropsColumn: dropsScopeColumn)
            }
        }
    }
}

extension PostgresStore.FoundTable {
    private static let list = Statement(
        "found tables",
        """
        SELECT c.relname::text, a.attname::text FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1, a.attnum
        """)

    static func all(_ session: Session, _ schema: String) throws -> [Self] {
        let answer = try session.ask(list, .text(schema))
        return (0..<answer.count).reduce(into: []) { tables, row in
            let name = answer.text(row, 0)
            if tables.last?.name != name {
                tables.append(Self(table: "\(schema).\(name)", name: name, columns: []))
            }
            if !answer.isNull(row, 1) { tables[tables.count - 1].columns.append(answer.text(row, 1)) }
        }
    }
}

/// Undoes what attaching has done.
enum Detaching {
    private static let forget = Statement("forget table's notes", "DELETE FROM capture WHERE table_id = $1")
    private static let remove = Statement("remove attached", "DELETE FROM attached_table WHERE id = $1")

    static func run(_ session: Session, _ table: AttachedTable, dropsColumn: Bool) throws -> Int {
        try session.write(Attaching.shortWait)
        // In the order in which a commit takes them.
        try session.write(Attaching.lock)
        let place = try table.whereItIs(session).map { "\(SQL.quoted($0.schema)).\(SQL.quoted($0.name))" }
        for sql in table.removal(from: place, dropsColumn: dropsColumn) {
            try session.write(Statement("", sql))
        }
        try session.write(remove, .integer(table.id))
        return try session.change(forget, .integer(table.id)).affected
    }
}

extension PostgresStore.TableStatus {
    private static let list = Statement(
        "attached with notes",
        """
        SELECT a.id, a.definition, a.is_filled, (SELECT count(*) FROM capture c WHERE c.table_id = a.id)
        FROM attached_table a ORDER BY a.id
        """)

    static func all(_ session: Session) throws -> [Self] {
        let answer = try session.ask(list)
        return try (0..<answer.count).map { row in
            let table = try AttachedTables.table(answer, row)
            var status = Self(table, isFilled: answer.flag(row, 2), notes: Int(try answer.integer(row, 3)))
            status.problem = try table.problem(session)
            return status
        }
    }

    static func table(of entity: String, _ session: Session) throws -> AttachedTable {
        let tables = try AttachedTables(session.ask([AttachedTables.all]).first)
        guard let table = tables[entity] else { throw TableError.notAttached(entity) }
        return table
    }

    init(_ table: AttachedTable, isFilled: Bool, notes: Int) {
        self.table = table.label
        entity = table.entity
        key = table.key.label
        columns = table.columns.map(\.name)
        readOnly = table.readOnly ?? []
        sensitive = table.sensitiveColumns
        exact = table.exactColumns
        hasNumberKey = table.key.columns.count == 1 && table.key.columns[0].form == .integer
        deviceTable = table.deviceTable
        addsColumn = table.addsColumn
        scopeColumn = table.scopeColumn?.name
        switch table.place {
        case .constant(let name): scope = name
        case .column(_, let prefix): scope = prefix
        }
        self.isFilled = isFilled
        self.notes = notes
    }
}

extension TableError {
    static func notAttached(_ entity: String) -> TableError {
        TableError(
            .notAttached, "no table is attached as \(entity)", hint: "`tidemark attach` without --table lists them")
    }
}
