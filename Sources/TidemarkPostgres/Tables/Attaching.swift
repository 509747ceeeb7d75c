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
        // The lock waits for present writers, and later ones wait for it: no row is between the triggers and the fill.
        try session.write(Statement("", "LOCK TABLE \(found.sql) IN SHARE ROW EXCLUSIVE MODE"))
        // Commits that have not seen the table are over then.
        try session.write(Self.lock)
        let taken = try session.ask(Self.taken, .text(EntityKey(plan.entity).text), .text(found.sql))
        if taken.count > 0 {
            let table = try AttachedTables.table(taken, 0)
            if taken.count == 1, Identifier.isSameName(table.entity, plan.entity),
                let place = try table.whereItIs(session), place == (found.schema, found.name)
            {
                return try alter(table, found, wasFilled: taken.flag(0, 2), session)
            }
            throw TableError(
                .alreadyAttached, "\(table.label) is attached already, as \(table.entity)",
                hint: "`tidemark detach` takes it off first; one entity has one table")
        }
        if !plan.tableWins, try isInUse(session) {
            throw TableError(
                .entityInUse, "the log has records of \(plan.entity) already",
                hint: "--table-wins makes them what the table says, and deletes those that it does not have")
        }
        return try install(found, session)
    }

    /// Whether the log of any scope has a live record of the entity, however it spells its name.
    private func isInUse(_ session: Session) throws -> Bool {
        var last: [UInt8] = []
        while true {
            let scopes = try ScopeSpelling.page(session, behind: last)
            for scope in scopes {
                guard let spelling = scope.entities.spelling(of: plan.entity) else { continue }
                if try session.ask(Self.inUse, .bytes(scope.name), .text(spelling)).flag(0, 0) { return true }
            }
            guard scopes.count == ScopeSpelling.limit, let next = scopes.last else { return false }
            last = next.name
        }
    }

    private func check() throws(TableError) {
        guard Identifier.isEntity(plan.entity) else {
            throw TableError(
                .nameInvalid, "'\(plan.entity)' is not an entity's name",
                hint: Identifier.entityHint)
        }
        if let subscope = plan.subscope, !Identifier.isSubscope(subscope) {
            throw TableError(.nameInvalid, "'\(subscope)' is not a sub-scope's name", hint: Identifier.subscopeHint)
        }
        if let scope = plan.place.scope, scope.subscope != nil {
            throw TableError(
                .nameInvalid, "'\(scope)' names a sub-scope",
                hint: "name the scope \(scope.parent), and declare the entity's sub-scope on the server")
        }
        if case .column(_, let prefix) = plan.place, !prefix.isEmpty,
            Scope(prefix).map({ $0.subscope != nil }) ?? true
        {
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
        let id = try session.change(Self.insert, .text(EntityKey(plan.entity).text), .text(found.sql)).integer(0, 0)
        let table = try described(found, id: id, home: try session.ask(Self.home).text(0, 0))
        try describe(table, session)
        for sql in table.installation(partitions: found.partitions) { try session.write(Statement("", sql)) }
        if plan.tableWins { try session.write(Self.lookAtAll, .integer(id)) }
        return table
    }

    /// Describes a table as the plan asks for it.
    private func described(_ found: CatalogueTable, id: Int64, home: String) throws(TableError) -> AttachedTable {
        let place = try place(in: found)
        let key = try found.key()
        if plan.columns.names?.isEmpty == true, found.columns.contains(where: { !$0.isKey }) {
            throw found.columnsNotNamed()
        }
        var columns = try found.fields(plan.columns.names)
        let readOnly = columns.map(\.name).filter { plan.columns.isReadOnly($0) && $0 != place.column?.name }
        if case .column(let column, _) = place, !columns.contains(column), !key.contains(column) {
            columns.append(column)
        }
        return AttachedTable(
            id: id, schema: found.schema, name: found.name, entity: plan.entity, key: key, columns: columns,
            readOnly: readOnly, place: place, subscope: plan.subscope, addsColumn: plan.addsColumn, home: home)
    }

    private func describe(_ table: AttachedTable, _ session: Session) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try session.write(
            Self.describe, .integer(table.id), .bytes(Array(try encoder.encode(table))), .text(table.sql))
    }

    /// Attaches a table anew that is attached: other columns, another name, other partitions. Nothing that is written
    /// meanwhile is missed, since its triggers stay.
    private func alter(
        _ table: AttachedTable, _ found: CatalogueTable, wasFilled: Bool, _ session: Session
    ) throws -> AttachedTable {
        var new = try described(found, id: table.id, home: table.home)
        guard new.place.isLike(table.place, in: found), new.subscope == table.subscope,
            new.key.columns.count == table.key.columns.count,
            zip(new.key.columns, table.key.columns).allSatisfy({ $0.isLike($1, in: found) })
        else {
            throw TableError(
                .alreadyAttached,
                "\(found.label) is attached already, as \(table.entity), in another scope or by another key",
                hint: "`tidemark detach` takes it off first; columns and names alone change while it is attached")
        }
        new.addsColumn = table.addsColumn
        // A partition that is new may have come with rows.
        let looksAgain = new.columns != table.columns || plan.tableWins || !found.newPartitions.isEmpty
        new.isRefilled = looksAgain && wasFilled ? true : table.isRefilled
        try describe(new, session)
        let statements = new.makingFunction + new.makingTruncateTriggers(on: found.newPartitions)
        for sql in statements { try session.write(Statement("", sql)) }
        if looksAgain { try session.write(Self.fillAgain, .integer(table.id)) }
        if plan.tableWins { try session.write(Self.lookAtAll, .integer(table.id)) }
        return new
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
        "taken",
        "SELECT id, definition, is_filled FROM attached_table WHERE entity = $1 OR relation = $2 ORDER BY id")
    private static let inUse = Statement(
        "entity in use",
        """
        SELECT EXISTS (SELECT 1 FROM change WHERE scope = $1 AND entity = $2 AND superseded_by IS NULL AND kind = 0)
        """)
    private static let home = Statement("home", "SELECT current_schema()::text")
    private static let insert = Statement(
        "insert attached", "INSERT INTO attached_table (entity, relation, definition) VALUES ($1, $2, '') RETURNING id")
    private static let describe = Statement(
        "describe attached", "UPDATE attached_table SET definition = $2, relation = $3 WHERE id = $1")
    private static let fillAgain = Statement(
        "fill again", "UPDATE attached_table SET filled_to = NULL, is_filled = false WHERE id = $1")
    private static let lookAtAll = Statement(
        "look at all", "INSERT INTO capture (table_id, scope) VALUES ($1, '')")
}

/// How a scope spells the names of its entities: each in its own way, so that no scope waits for another one.
struct ScopeSpelling {
    let name: [UInt8]
    let entities: EntityNames

    /// Scopes that are looked at together.
    static let limit = 500

    private static let list = Statement(
        "spellings", "SELECT name, entities FROM scope WHERE name > $1 ORDER BY name LIMIT $2")
    private static let one = Statement("spelling", "SELECT name, entities FROM scope WHERE name = $1")

    /// The next scopes, in the order of their names.
    static func page(_ session: Session, behind name: [UInt8]) throws -> [ScopeSpelling] {
        let answer = try session.ask(list, .bytes(name), .integer(Int64(limit)))
        return (0..<answer.count).map { ScopeSpelling(answer, $0) }
    }

    static func of(_ scope: [UInt8], _ session: Session) throws -> EntityNames {
        let answer = try session.ask(one, .bytes(scope))
        return answer.count > 0 ? ScopeSpelling(answer, 0).entities : EntityNames()
    }

    private init(_ answer: QueryResult, _ row: Int) {
        name = Array(answer.bytes(row, 0))
        entities = EntityNames(stored: answer.text(row, 1))
    }
}

extension AttachedTable.Place {
    /// Whether both places put rows into the same scopes; a renamed column counts as the same.
    fileprivate func isLike(_ other: Self, in found: CatalogueTable) -> Bool {
        switch (self, other) {
        case (.constant(let name), .constant(let former)): name == former
        case (.column(let column, let prefix), .column(let former, let formerPrefix)):
            prefix == formerPrefix && column.isLike(former, in: found)
        case (.constant, .column), (.column, .constant): false
        }
    }
}

extension AttachedColumn {
    /// Whether a column is the former one, perhaps renamed: it has another name only where no column has the old one.
    fileprivate func isLike(_ former: AttachedColumn, in found: CatalogueTable) -> Bool {
        type == former.type && (name == former.name || !found.columns.contains { $0.name == former.name })
    }
}

extension PostgresStore.TablePlan {
    fileprivate var addsColumn: Bool {
        if case .newColumn = place { true } else { false }
    }
}
