import GRDB
import GRDBSQLite
import TidemarkWire

/// Tries each quarantined row that is due, whatever refused it. Candidates for a unique value stand as if they had been
/// inserted in the order of their record ids, so that all devices choose alike and a swap of two unique values goes
/// through. One record that several scopes hold has its row from the first of them, by name. A row that holds an unseen
/// write stays until that is compared; the rows that it keeps out are tried after the next answer.
struct UniqueResolver {
    let db: Database
    let table: RecordTable

    /// A quarantined row that is tried.
    private struct Quarantined {
        var record: String
        var scope: String
    }

    /// Returns how many quarantined rows found their place.
    func resolve() throws -> Int {
        let shape = table.shape
        var placed = 0
        var last: Quarantined?
        // Losers that are evicted have larger ids than the winner, so they come up later in the same scan.
        while let quarantined = try next(after: last) {
            last = quarantined
            guard let id = RecordID(quarantined.record), let key = shape.key(of: id),
                let cells = try QuarantinedRow.cells(db, shape, id, quarantined.scope)
            else { continue }
            if let shadow = try table.shadow(db, key), shadow.isGone {
                try QuarantinedRow.forgetOwn(db, shape.name, quarantined.record, shadow)
                guard try QuarantinedRow.cells(db, shape, id, quarantined.scope) != nil else { continue }
            }
            switch try claim(quarantined, id, key, cells) {
            case .none: continue
            case .outdated:
                try editQuarantined(id, key, quarantined.scope)
                try QuarantinedRow.remove(db, shape.name, quarantined.record, quarantined.scope)
            case .due:
                guard try place(id, key, cells, quarantined.scope) else { continue }
                try forgetNamesake(id, key)
                try QuarantinedRow.remove(db, shape.name, quarantined.record, quarantined.scope)
                placed += 1
            }
        }
        return placed
    }

    /// The app made the record anew meanwhile: its row is newer than the quarantined one, and an edit of that where a
    /// server has it.
    private func editQuarantined(_ id: RecordID, _ key: [Cell], _ scope: String) throws {
        guard var shadow = try table.shadow(db, key), shadow.state == .absent, try ScopeRecord.isKnown(db, scope),
            let quarantined = try QuarantinedRow.entry(db, table.shape, id, scope)
        else { return }
        shadow = shadow.answered
        shadow.learn(quarantined.cells)
        shadow.version = quarantined.version
        if table.shape.isScopedByColumn { shadow.scope = scope }
        try table.writeShadow(db, key, shadow)
    }

    /// Forgets a namesake that the app made under the record's key and took away again before it was sent: the row that
    /// stands there now is neither edited nor deleted.
    private func forgetNamesake(_ id: RecordID, _ key: [Cell]) throws {
        guard let shadow = try table.shadow(db, key), shadow.state == .absent, shadow.isGone,
            try !Outbox.hasOpen(db, entity: table.shape.name, record: id.text)
        else { return }
        try table.forget(db, key, id)
    }

    private func next(after last: Quarantined?) throws -> Quarantined? {
        try QuarantinedRow.nextDue(db, table.shape.name, after: (last?.record ?? "", last?.scope ?? ""))
            .map { Quarantined(record: $0.record, scope: $0.scope) }
    }

    private enum Claim {
        case none, outdated, due
    }

    /// Whether the record's place in the table is free for this scope's row, or another scope's clean row gives way.
    private func claim(_ quarantined: Quarantined, _ id: RecordID, _ key: [Cell], _ cells: [Cell]) throws -> Claim {
        let shape = table.shape
        let row = try table.row(db, key)
        guard shape.isScopedByColumn else { return row == nil ? .due : .outdated }
        let owner = try table.owner(db, key)
        if owner == quarantined.scope { return row == nil ? .due : .outdated }
        // An operation in flight overlays this row, which comes with the verdict (`Applier.overlayReplayed`).
        let onItsWay = try Outbox.open(db, entity: shape.name, record: quarantined.record, scope: quarantined.scope)
        guard onItsWay.isEmpty else { return .none }
        guard let owner else {
            return shape.scope(ofKey: key, cells)?.name == quarantined.scope ? .due : .none
        }
        guard try table.shadow(db, key) == nil, quarantined.scope < owner, try !isUncompared(id) else { return .none }
        try evict(Candidate(id: id, key: key))
        return .due
    }

    /// Whether the record's row holds a write that no trigger saw, and that is no edit yet. It waits in the row's own
    /// scope, or in the one that the row moves from.
    func isUncompared(_ id: RecordID) throws -> Bool {
        let shape = table.shape
        guard let key = shape.key(of: id), let cells = try table.row(db, key) else { return false }
        let origin = try table.shadow(db, key)?.scope.flatMap(Scope.init)
        return try [shape.scope(ofKey: key, cells), origin].compactMap { $0 }.contains { scope in
            try Inferred.entry(db, scope, shape.name, id.text) != nil
        }
    }

    private func place(_ id: RecordID, _ key: [Cell], _ cells: [Cell], _ scope: String) throws -> Bool {
        guard let refusal = try attempt(key, cells) else { return true }
        var reason = refusal
        if refusal.isUniqueViolation {
            // A candidate with a smaller id stays: either it wins, or a partial index does not hold it at all. A
            // candidate that is evicted for nothing comes up later in the same scan and finds its place again.
            let candidates = try self.candidates(key, cells).filter { id < $0.id }
            if !candidates.isEmpty, try !candidates.contains(where: { try isUncompared($0.id) }) {
                try db.execute(sql: "SAVEPOINT tidemark_unique")
                for candidate in candidates { try evict(candidate) }
                if let still = try attempt(key, cells) {
                    try db.execute(sql: "ROLLBACK TO tidemark_unique")
                    reason = still
                } else {
                    try db.execute(sql: "RELEASE tidemark_unique")
                    return true
                }
                try db.execute(sql: "RELEASE tidemark_unique")
            }
        }
        try QuarantinedRow.put(
            db, table.shape, record: id.text, scope: scope, version: nil, cells: cells, reason: reason.refusal,
            contends: reason.dependsOnOthers)
        return false
    }

    private func attempt(_ key: [Cell], _ cells: [Cell]) throws -> DatabaseError? {
        // A trigger of the app's may take the value from the row that holds it, and then nothing would contend.
        if table.shape.isGuarded, let refusal = try trial(key, cells) { return refusal }
        return try write(key, cells)
    }

    private func write(_ key: [Cell], _ cells: [Cell]) throws -> DatabaseError? {
        do {
            try table.writeRow(db, key, cells)
            return nil
        } catch let error as DatabaseError where error.refusesRow {
            return error
        }
    }

    /// Returns the schema's own refusal of a row, without the app's triggers.
    private func trial(_ key: [Cell], _ cells: [Cell]) throws -> DatabaseError? {
        try db.execute(sql: "SAVEPOINT tidemark_trial")
        let refusal = try ConnectionSwitch.triggers.off(db) { try write(key, cells) }
        try db.execute(sql: "ROLLBACK TO tidemark_trial; RELEASE tidemark_trial")
        return refusal
    }

    struct Candidate {
        var id: RecordID
        var key: [Cell]
    }

    /// The visible rows that hold one of the unique values.
    func candidates(_ key: [Cell], _ cells: [Cell]) throws -> [Candidate] {
        let shape = table.shape
        var candidates: [Candidate] = []
        for unique in shape.uniques.dropFirst() {
            // Without a generated column's part a few rows too many are found, which costs nothing.
            let parts = unique.parts.compactMap { part -> (name: String, collation: String)? in
                guard let name = part.column, shape.columns.contains(where: { $0.name == name }) else { return nil }
                return (name, part.collation)
            }
            let values = parts.map { name, _ -> Cell in
                if let index = shape.dataIndex(name) { return cells[index] }
                return shape.key.firstIndex { $0.name == name }.map { key[$0] } ?? .null
            }
            guard !values.isEmpty, !values.contains(.null) else { continue }
            let keys = shape.key.map(\.sql).joined(separator: ", ")
            let conditions = parts.enumerated().map { place, part in
                "\(quoted(part.name)) = ?\(place + 1) COLLATE \(quoted(part.collation))"
            }
            let condition = (conditions + (unique.condition.map { ["(\($0))"] } ?? [])).joined(separator: " AND ")
            let found = try Query(db, "SELECT \(keys) FROM \(shape.sql) WHERE \(condition)")
                .rows(db, values) { $0.cells(0..<shape.key.count) }
            for candidate in found where candidate != key && !candidates.contains(where: { $0.key == candidate }) {
                // A row whose key cannot travel has no place in the order; it was here first, so it stays.
                guard let id = shape.recordID(candidate) else { return [] }
                candidates.append(Candidate(id: id, key: candidate))
            }
        }
        guard shape.hasHiddenUniques else { return candidates }
        return candidates
            + (try hiddenCandidates(key, cells)).filter { candidate in !candidates.contains { $0.key == candidate.key }
            }
    }

    /// Finds the rows that a REPLACE would evict by an index whose values cannot be read off a row: the REPLACE is
    /// tried, noted by the capture triggers, which see evictions while triggers are recursive, and taken back.
    private func hiddenCandidates(_ key: [Cell], _ cells: [Cell]) throws -> [Candidate] {
        let shape = table.shape
        let wasOn = try Query(db, "PRAGMA recursive_triggers").first(db) { $0.integer(0) } == 1
        try db.execute(sql: "SAVEPOINT tidemark_trial")
        defer {
            sqlite3_exec(
                db.sqliteConnection, "ROLLBACK TO tidemark_trial; RELEASE tidemark_trial", nil, nil, nil)
            // An interruption may have undone the savepoint with all the transaction.
            sqlite3_exec(
                db.sqliteConnection, "PRAGMA recursive_triggers = \(wasOn ? "ON" : "OFF")", nil, nil, nil)
        }
        try db.execute(sql: "PRAGMA recursive_triggers = ON")
        try CaptureSuppression.lower(db)
        let shadows = ShadowTable(shape)
        try shadows.unmarkAll(db)
        let columns = shape.columns.map(\.sql).joined(separator: ", ")
        let places = (1...shape.columns.count).map { "?\($0)" }.joined(separator: ", ")
        do {
            try Query(db, "INSERT OR REPLACE INTO \(shape.sql)(\(columns)) VALUES (\(places))").execute(key + cells)
        } catch let error as DatabaseError where error.refusesRow { return [] }
        return try shadows.markedKeys(db)
            .filter { $0 != key }.compactMap { key in shape.recordID(key).map { Candidate(id: $0, key: key) } }
    }

    private func evict(_ candidate: Candidate) throws {
        guard let cells = try table.row(db, candidate.key) else { return }
        try table.deleteRow(db, candidate.key)
        try table.quarantineContender(db, candidate.key, candidate.id, cells)
    }
}
