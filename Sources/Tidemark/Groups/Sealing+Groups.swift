import GRDB
import TidemarkWire

// MARK: - Groups: sealed together, sent together, set aside together

extension Sealing {
    enum GroupOutcome: Hashable {
        case sealed(count: Int, bytes: Int)
        /// One of its edits cannot travel, or waits for another record; so do all.
        case setAside
        /// Another scope's turn comes first.
        case passed
        /// Not now: one of its records waits for a verdict, or the request is full.
        case held
    }

    private struct Member {
        var table: RecordTable
        var key: [Cell]
        /// `nil` where the key cannot be a record id.
        var id: RecordID?

        var name: RecordName? { id.map { RecordName(entity: table.shape.name, record: $0.text) } }
    }

    private enum Hindrance {
        case unsendable(Member)
        case waiting(for: RecordName)
        case held(by: RecordName)
        case passed
    }

    /// Seals all edits of a group, or none of them.
    func seal(
        group: String, _ batch: inout Batch, _ tables: [RecordTable], limit: Int, isFirst: Bool
    ) throws -> GroupOutcome {
        let members = try members(of: group, tables)
        // Sealed with an earlier mark of the same group, or set aside with one.
        guard !members.isEmpty else { return .setAside }
        guard members.count <= limit || isFirst && !batch.hasOpen else { return .held }
        if batch.hasOpen {
            for member in members {
                guard let id = member.id else { continue }
                let entity = member.table.shape.name
                if try Outbox.hasOpen(db, entity: entity, record: id.text, scope: scope.scope.name) { return .held }
            }
        }
        let before = batch
        var (count, bytes) = (0, 0)
        var hindrance: Hindrance?
        try db.inSavepoint {
            batch.group = group
            let last = try Outbox.lastID(db)
            while hindrance == nil, let member = try next(of: group, tables, batch) {
                guard let id = member.id else {
                    hindrance = .unsendable(member)
                    break
                }
                switch try seal(&batch, member.table, member.key, id) {
                case .sealed(let size): (count, bytes) = (count + 1, bytes + size)
                case .settled: hindrance = try self.hindrance(member, id, after: last)
                case .passed: hindrance = .passed
                }
                batch.early.insert(RecordName(entity: member.table.shape.name, record: id.text))
            }
            batch.group = nil
            guard hindrance == nil else { return .rollback }
            for table in tables { try table.rename(db, group: group, to: nil) }
            return .commit
        }
        guard let hindrance else { return .sealed(count: count, bytes: bytes) }
        batch = before
        if case .passed = hindrance { return .passed }
        try setAside(try self.members(of: group, tables), hindrance, &batch, group)
        return .setAside
    }

    private func members(of group: String, _ tables: [RecordTable]) throws -> [Member] {
        try tables.flatMap { table in
            try Query(
                db,
                """
                SELECT \(table.shape.key.map(\.sql).joined(separator: ", ")) FROM \(table.shape.shadowSQL)
                WHERE tidemark_group = ?1 ORDER BY tidemark_mark IS NULL, tidemark_mark, tidemark_row
                """
            ).rows(db, [.text(group)]) { row in
                let key = row.cells(0..<table.shape.key.count)
                return Member(table: table, key: key, id: table.shape.recordID(key))
            }
        }
    }

    /// Looked up anew each time: a record that is named may have joined.
    private func next(of group: String, _ tables: [RecordTable], _ batch: Batch) throws -> Member? {
        try members(of: group, tables).first { member in
            member.name.map { !batch.early.contains($0) } ?? true
        }
    }

    private func hindrance(_ member: Member, _ id: RecordID, after last: Int64) throws -> Hindrance? {
        let name = RecordName(entity: member.table.shape.name, record: id.text)
        if let parent = try Waiting.parent(db, of: name) { return .waiting(for: parent) }
        if let culprit = try Quarantine.culprit(db, of: name) { return .held(by: culprit) }
        return try Outbox.hasLocalRefusal(db, entity: member.table.shape.name, record: id.text, after: last)
            ? .unsendable(member) : nil
    }

    /// The group stays together: when the edit at fault is mended, or the record waited for has its id, all go.
    private func setAside(
        _ members: [Member], _ hindrance: Hindrance, _ batch: inout Batch, _ group: String
    ) throws {
        switch hindrance {
        case .passed: return
        case .waiting(let parent):
            batch.hasWaiting = true
            for member in members {
                guard let name = member.name else { continue }
                try Waiting.note(db, name, for: parent)
                try member.table.unmark(db, member.key)
            }
        case .held(let culprit):
            for member in members {
                guard let name = member.name else { continue }
                try Quarantine.hold(db, name, for: culprit)
                try member.table.unmark(db, member.key)
            }
        case .unsendable(let culprit):
            for member in members where member.key != culprit.key || member.table.shape != culprit.table.shape {
                try quarantine(
                    &batch, member.table, member.key, id: member.id,
                    why: "Another edit of the same group cannot be sent.")
            }
            if let id = culprit.id {
                _ = try seal(&batch, culprit.table, culprit.key, id)
            } else {
                try quarantine(&batch, culprit.table, culprit.key, id: nil, why: "Its key cannot be a record id.")
            }
            for member in members {
                guard let id = member.id else { continue }
                try Outbox.noteGroup(db, group, entity: member.table.shape.name, record: id.text)
            }
        }
    }

    // MARK: What one request carries

    /// One lane's numbers must not skip, so the batch is cut, never thinned; and never inside a group.
    func cut(_ entries: [OutboxEntry]) throws -> [OutboxEntry] {
        var entries = entries
        if let last = entries.last, let group = last.group {
            entries += try Outbox.rest(db, of: group, after: last.id)
        }
        var (taken, bytes) = (0, 0)
        while taken < entries.count {
            let first = entries[taken]
            let rest = entries[taken...]
            let unit = first.group == nil ? rest.prefix(1) : rest.prefix { $0.group == first.group }
            let size = unit.reduce(0) { $0 + $1.members.count + 80 }
            // What comes first goes, however large: it would stop everything behind it.
            let fits = bytes + size <= byteLimit + recordByteLimit && taken + unit.count <= operationLimit
            guard fits || taken == 0 else { break }
            (taken, bytes) = (taken + unit.count, bytes + size)
        }
        return Array(entries.prefix(taken))
    }
}

extension RecordTable {
    func group(_ db: Database, _ key: [Cell]) throws -> String? {
        let isKey = shape.key.enumerated().map { "\($1.sql) = ?\($0 + 1)" }.joined(separator: " AND ")
        return try Query(db, "SELECT tidemark_group FROM \(shape.shadowSQL) WHERE \(isKey)")
            .first(db, key) { $0.optionalText(0) } ?? nil
    }

    /// Back into the group that it was taken out of, if there was one.
    func setGroup(_ db: Database, _ key: [Cell], _ group: String?) throws {
        guard let group else { return }
        let isKey = shape.key.enumerated().map { "\($1.sql) = ?\($0 + 2)" }.joined(separator: " AND ")
        try Query(db, "UPDATE \(shape.shadowSQL) SET tidemark_group = ?1 WHERE \(isKey)").execute([.text(group)] + key)
    }

    func rename(_ db: Database, group: String, to other: String?) throws {
        try Query(db, "UPDATE \(shape.shadowSQL) SET tidemark_group = ?2 WHERE tidemark_group = ?1")
            .execute([.text(group), .optional(other)])
    }
}

extension Outbox {
    static func lastID(_ db: Database) throws -> Int64 {
        try Query(db, "SELECT coalesce(max(id), 0) FROM tidemark_operation").first(db) { $0.integer(0) } ?? 0
    }

    static func hasLocalRefusal(_ db: Database, entity: String, record: String, after id: Int64) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND status = 'rejected' AND lane IS NULL AND id > ?3 LIMIT 1
            """
        ).first(db, [.text(entity), .text(record), .integer(id)]) { _ in true } ?? false
    }

    static func noteGroup(_ db: Database, _ group: String, entity: String, record: String) throws {
        try Query(
            db,
            """
            UPDATE tidemark_operation SET in_group = ?3
            WHERE entity = ?1 AND record = ?2 AND status = 'rejected' AND lane IS NULL
            """
        ).execute([.text(entity), .text(record), .text(group)])
    }

    /// The operations of a group that stand behind one of them.
    static func rest(_ db: Database, of group: String, after id: Int64) throws -> [OutboxEntry] {
        try Query(
            db,
            """
            SELECT \(columns) FROM tidemark_operation
            WHERE id > ?1 AND in_group = ?2 AND finished_at IS NULL ORDER BY id LIMIT ?3
            """
        ).rows(db, [.integer(id), .text(group), .integer(Int64(Grouping.limit))], entry)
    }
}
