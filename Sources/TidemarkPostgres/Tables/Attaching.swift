import Foundation
import TidemarkServer
import TidemarkWire

/// Attaches a table in one transaction: from its commit on, nothing that is written to the table is missed.
struct Attaching {
    let plan: PostgresStore.TablePlan

    func run(_ session: Session) throws -> AttachedTable {
        try check()
        try session.write(Self.shortWait)
        try session.write(Self.plainStrings)
        let found = try CatalogueTable(session, named: plan.table)
        try found.check()
        // Whoever writes now is waited for, and whoever comes waits: no row is between the triggers and the fill.
        try session.write(Statement("", "LOCK TABLE \(found.sql) IN SHARE ROW EXCLUSIVE MODE"))
        // Commits that have not seen the table are over then.
        try session.write(Self.lock)
        let taken = try session.ask(Self.taken, .text(plan.entity), .text(found.sql))
        guard taken.count == 0 else {
            throw TableError(
                .alreadyAttached, "\(taken.text(0, 1)) is attached already, as \(taken.text(0, 0))",
                hint: "`tidemark detach` takes it off first; one entity has one table")
        }
        if !plan.tableWins, try session.ask(Self.inUse, .text(plan.entity)).count > 0 {
            throw TableError(
                .entityInUse, "the log has records of \(plan.entity) already",
                hint: "--table-wins makes them what the table says, and deletes those that it does not have")
        }
        return try install(found, session)
    }

    private func check() throws(TableError) {
        guard Identifier.isEntity(plan.entity) else {
            throw TableError(
                .nameInvalid, "'\(plan.entity)' is not an entity's name",
                hint: "letters, digits and _, at most \(Identifier.entityLimit), no digit first")
        }
        if case .column(_, let prefix) = plan.place, !prefix.isEmpty, !Identifier.isScope(prefix) {
            throw TableError(
                .nameInvalid, "'\(prefix)' cannot stand before a scope's name",
                hint: "letters, digits and . _ : @ -, for example list:")
        }
    }

    private func install(_ found: CatalogueTable, _ session: Session) throws -> AttachedTable {
        var found = found
        if case .newColumn(let name, let scope) = plan.place {
            let initial = scope.map { " DEFAULT \(SQL.literal($0.name))" } ?? ""
            let column = "\(SQL.quoted(name)) text\(initial)"
            try session.write(Statement("", "ALTER TABLE \(found.sql) ADD COLUMN \(column)"))
            found = try CatalogueTable(session, named: plan.table)
        }
        let place = try place(in: found)
        var columns = try found.fields(plan.columns)
        if case .column(let column, _) = place, !columns.contains(column),
            found.columns.contains(where: {
                $0.name == column.name && !$0.isKey
            })
        {
            columns.append(column)
        }
        let id = try session.change(Self.insert, .text(plan.entity), .text(found.sql)).integer(0, 0)
        let table = AttachedTable(
            id: id, schema: found.schema, name: found.name, entity: plan.entity, key: try found.key(),
            columns: columns, place: place, addsColumn: plan.addsColumn,
            home: try session.ask(Self.home).text(0, 0))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try session.write(Self.describe, .integer(id), .bytes(Array(try encoder.encode(table))))
        for sql in table.installation { try session.write(Statement("", sql)) }
        if plan.tableWins { try session.write(Self.lookAtAll, .integer(id)) }
        return table
    }

    private func place(in found: CatalogueTable) throws(TableError) -> AttachedTable.Place {
        switch plan.place {
        case .scope(let scope): .constant(scope.name)
        case .column(let name, let prefix): .column(try found.scopeColumn(name), prefix: prefix)
        case .newColumn(let name, _): .column(try found.scopeColumn(name), prefix: "")
        }
    }

    /// How long other programs may be held up by the wait for their own locks.
    static let shortWait = Statement("short wait", "SET LOCAL lock_timeout TO '3s'")
    static let plainStrings = Statement("plain strings", "SET LOCAL standard_conforming_strings TO on")
    static let lock = Statement("lock attached", "LOCK TABLE attached_table IN ACCESS EXCLUSIVE MODE")
    private static let taken = Statement(
        "taken", "SELECT entity, relation FROM attached_table WHERE entity = $1 OR relation = $2")
    private static let inUse = Statement(
        "entity in use",
        """
        SELECT 1 FROM scope s WHERE EXISTS (
            SELECT 1 FROM change c WHERE c.scope = s.name AND c.entity = $1 AND c.superseded_by IS NULL AND c.kind = 0)
        LIMIT 1
        """)
    private static let home = Statement("home", "SELECT current_schema()::text")
    private static let insert = Statement(
        "insert attached", "INSERT INTO attached_table (entity, relation, definition) VALUES ($1, $2, '') RETURNING id")
    private static let describe = Statement(
        "describe attached", "UPDATE attached_table SET definition = $2 WHERE id = $1")
    private static let lookAtAll = Statement(
        "look at all", "INSERT INTO capture (table_id, scope) VALUES ($1, '')")
}

extension PostgresStore.TablePlan {
    fileprivate var addsColumn: Bool {
        if case .newColumn = place { true } else { false }
    }
}
