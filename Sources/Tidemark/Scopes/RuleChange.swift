import GRDB
import TidemarkWire

/// A table whose rows are spread over scopes by another rule than before. Rows that are in the same scope by both stay.
/// The others go from this device as if their scope were left: what was not sent is orphaned, what was sealed is still
/// sent. The table gets what its scopes hold now; nothing changes on the server.
struct RuleChange: Sendable {
    var table: String
    var old: SyncedTable.ScopeRule
    var new: SyncedTable.ScopeRule
    var followed: [Scope]
    var now: Int64

    static func find(
        _ db: Database, _ tables: [(name: String, rule: SyncedTable.ScopeRule)], _ followed: [Scope], now: Int64
    ) throws -> [RuleChange] {
        let known = try TableRules.all(db)
        return tables.compactMap { table in
            guard let old = known[table.name], old != table.rule else { return nil }
            return RuleChange(table: table.name, old: old, new: table.rule, followed: followed, now: now)
        }
    }

    /// Runs on the writer, outside any transaction.
    func run(_ db: Database) throws {
        _ = try ApplyTransaction.withoutForeignKeys(db) {
            // Another engine on this file may have been quicker.
            guard try TableRules.all(db)[table] == old else { return Applier.Outcome() }
            // The installation that follows empties what the guards of triggers note meanwhile.
            try CaptureSuppression.raise(db)
            try change(db)
            try CaptureSuppression.lower(db)
            return Applier.Outcome()
        }
    }

    private func change(_ db: Database) throws {
        // The file may be of an older version, and the column of the new rule as new as the rule.
        try LibrarySchema.install(db)
        let shape = try TableSchema(db, table: table, rule: new)
        try Installation.widenShadow(db, shape)
        let scopes = try ScopeRecord.all(db)
        // Without its column the old rule says nothing any more: what is here is looked at by the new one.
        if let before = try TableSchema.supported(db, table: table, rule: old) {
            for scope in scopes where old.mayHaveRows(in: scope) { try removeRows(scope, before, shape, db) }
            for scope in scopes where old.mayHaveRows(in: scope) { try takeGroups(scope, db) }
        }
        try place(db, shape)
        try Backfills.enqueue(db, entity: table, fields: nil, rule: new)
        try TableRules.write(db, table, new)
        try Marks.announce(db)
    }

    private func removeRows(_ scope: Scope, _ before: TableSchema, _ shape: TableSchema, _ db: Database) throws {
        try TableRemoval(
            db: db, scope: scope, table: RecordTable(before), reserved: [], now: now, staying: shape,
            destination: destination(of: scope)
        ).run()
        try takeQuarantined(scope, before, db)
        for place in LibraryTable.following(.ruleChange) { try place.clear(db, scope: scope, entity: table) }
        if !new.mayHaveRows(in: scope) { try DeletedRowCache.clear(db, scope, entity: table) }
        guard !followed.contains(scope) else { return }
        try Outbox.clearOpen(db, scope, entity: table)
    }

    /// A table that goes into a sub-scope, or out of one, keeps its permission: its edits are made again there.
    private func destination(of scope: Scope) -> Scope? {
        old.ofScope == new.ofScope ? scope.appending(subscope: new.subscope) : nil
    }

    /// A group of which one edit is orphaned goes whole, with the rows that would have stayed and those of other
    /// tables. What the server has of them comes again.
    private func takeGroups(_ scope: Scope, _ db: Database) throws {
        let groups = try OrphanedEdits.groups(db, scope)
        guard !groups.isEmpty else { return }
        for (name, rule) in try TableRules.all(db) where rule.mayHaveRows(in: scope) {
            guard let shape = try TableSchema.supported(db, table: name, rule: rule) else { continue }
            try Installation.widenShadow(db, shape)
            let removal = TableRemoval(db: db, scope: scope, table: RecordTable(shape), reserved: [], now: now)
            for group in groups {
                for id in try removal.run(group: group) where name != table {
                    try RefetchQueue.note(db, scope, name, id.text)
                }
            }
        }
    }

    /// Rows off the table go, but for one with edits that stays: it is all that there is of them.
    private func takeQuarantined(_ scope: Scope, _ before: TableSchema, _ db: Database) throws {
        let records = RecordTable(before)
        for record in try QuarantinedRow.records(db, table, scope) {
            if let id = RecordID(record), let key = before.key(of: id), let shadow = try records.shadow(db, key),
                scope.name == (before.isScopedByColumn ? shadow.scope ?? shadow.routingScope : scope.name),
                try QuarantinedRow.cells(db, before, id, scope.name) != nil
            {
                continue
            }
            try QuarantinedRow.remove(db, table, record, scope.name)
        }
    }

    /// Marks that stay are found by the new rule.
    private func place(_ db: Database, _ shape: TableSchema) throws {
        let records = RecordTable(shape)
        for key in try ShadowTable(shape).keys(db) {
            guard var shadow = try records.shadow(db, key) else { continue }
            let row = try records.row(db, key) ?? quarantined(db, shape, key, shadow)
            (shadow.scope, shadow.routingScope) = (nil, nil)
            if shape.isScopedByColumn {
                shadow.routingScope = row.map { shape.scope(ofKey: key, $0)?.name ?? "" } ?? ""
                shadow.scope = shadow.state == .absent ? nil : shape.scope(ofKey: key, shadow.cells)?.name
                if shadow.state == .absent, let id = shape.recordID(key), let place = shadow.routingScope,
                    try Outbox.hasOpen(db, entity: table, record: id.text, scope: place)
                {
                    shadow.scope = place
                }
            }
            try records.writeShadow(db, key, shadow)
        }
    }

    /// A row that stays where the schema does not take it, with the edits made here.
    private func quarantined(_ db: Database, _ shape: TableSchema, _ key: [Cell], _ shadow: Shadow) throws -> [Cell]? {
        let scope: String? =
            switch old.kind {
            case .constant(let scope): scope.name
            case .column: shadow.scope ?? shadow.routingScope
            }
        guard let scope, let id = shape.recordID(key) else { return nil }
        return try QuarantinedRow.edited(db, shape, id, shadow, scope)
    }
}

extension SyncedTable {
    /// The tables with the sub-scopes that they have in the file, where only that would change and the server is not
    /// known to declare it: an app that is ahead of its server, or offline, keeps its rows.
    static func deferringSubscopes(
        of tables: [SyncedTable], _ db: Database, until declarations: () throws -> Declarations?
    ) throws -> (tables: [SyncedTable], isDeferred: Bool) {
        let rules = try TableRules.all(db)
        guard tables.contains(where: { table in rules[table.name].map { $0.subscope != table.subscope } ?? false })
        else { return (tables, false) }
        let declarations = try declarations()
        var (result, isDeferred) = (tables, false)
        for (index, table) in tables.enumerated() {
            guard let rule = rules[table.name], rule.subscope != table.subscope,
                declarations.map({ $0.entity(table.name).subscope != table.subscope }) ?? true
            else { continue }
            // Another rule besides is the app's own business.
            if let named = table.scope, named != rule.ofScope { continue }
            result[index].subscope = rule.subscope
            isDeferred = true
        }
        return (result, isDeferred)
    }
}
