import GRDB
import TidemarkWire

// MARK: - Groups: sealed together, sent together, refused together

extension OutboxBatcher {
    struct Member {
        var table: RecordTable
        var key: [Cell]
        /// `nil` where the key cannot be a record id.
        var id: RecordID?
        var mark: Int64?

        func isSame(as other: Member) -> Bool { key == other.key && table.shape.name == other.table.shape.name }

        var name: RecordName? { id.map { RecordName(entity: table.shape.name, record: $0.text) } }
    }

    private enum Hindrance {
        case unsendable(Member)
        case blocked(by: Blocker)
        case skip
        /// Not now: a verdict comes first, or the request is full.
        case full
        case behind([Unit])
    }

    /// Seals all edits of a group, or none of them.
    func sealGroup(
        _ group: String, _ batch: inout Batch, _ tables: [RecordTable], limit: Int, isFirst: Bool
    ) throws -> Outcome {
        let members = try members(of: group)
        // Sealed with an earlier mark of the same group, or refused while it was behind another record.
        guard !members.isEmpty, !batch.order.groupsSeen.contains(group) else { return .done }
        guard members.allSatisfy({ member in tables.contains { $0.shape == member.table.shape } }) else {
            return try areApart(members) ? dissolve(group, &batch) : .skip
        }
        let isAlone = isFirst && !batch.hasOpen
        guard members.count <= limit || isAlone else { return .stop }
        let before = batch
        var (count, bytes) = (0, 0)
        var hindrance: Hindrance?
        try db.inSavepoint {
            batch.group = group
            hindrance = try sealMembers(members, &batch, &count, &bytes)
            batch.group = nil
            if count > limit, !isAlone { hindrance = hindrance ?? .full }
            guard hindrance == nil else { return .rollback }
            try schema.rename(db, group: group, to: nil)
            return .commit
        }
        guard let hindrance else { return .sealed(count: count, bytes: bytes) }
        batch = before
        switch hindrance {
        case .full: return .stop
        case .behind(let units): return .behind(units)
        case .skip: return try areApart(members) ? dissolve(group, &batch) : .skip
        // Members in several scopes go apart, in whichever scope's turn that is found: a row that is in no scope must
        // not keep the others.
        case .unsendable where try areApart(members): return try dissolve(group, &batch)
        case .unsendable where try isAnyOnItsWay(members): return .skip
        case .unsendable, .blocked:
            try refuse(try self.members(of: group), hindrance, &batch, group)
            return .done
        }
    }

    /// Seals the members one by one, each behind those that it refers to. Stops at the first that stands in the way of
    /// all.
    private func sealMembers(
        _ members: [Member], _ batch: inout Batch, _ count: inout Int, _ bytes: inout Int
    ) throws -> Hindrance? {
        let last = try Outbox.lastID(db)
        let own = Set(members.compactMap(\.name))
        var (members, next) = (members, 0)
        var stack: [Unsealed] = []
        var outside: [Unit] = []
        if let found = try openMember(members, batch) { return found }
        while true {
            if stack.isEmpty {
                if batch.order.hasMerged, let group = batch.group {
                    batch.order.hasMerged = false
                    (members, next) = (try self.members(of: group), 0)
                    if let found = try openMember(members, batch) { return found }
                }
                guard next < members.count else { return outside.isEmpty ? nil : .behind(outside) }
                let member = members[next]
                next += 1
                guard let id = member.id else { return .unsendable(member) }
                stack.append(Unsealed(table: member.table, key: member.key, id: id))
            }
            let record = stack[stack.count - 1]
            if batch.order.isEarly(record.name) {
                stack.removeLast()
                continue
            }
            switch try sealRecord(&batch, record) {
            case .sealed(_, let size): (count, bytes) = (count + 1, bytes + size)
            case .done where outside.isEmpty:
                guard let found = try hindrance(record, after: last) else { break }
                if let found = try hindrance(found, of: record, own, batch) { return found }
            case .skip where outside.isEmpty:
                if let found = try hindrance(.skip, of: record, own, batch) { return found }
            case .done, .skip: break
            case .stop: return .full
            case .behind(let units):
                batch.order.begin(.record(record))
                let along = units.compactMap(\.recordAlong)
                stack += along
                outside += units.filter { $0.recordAlong == nil }
                if !along.isEmpty { continue }
            }
            batch.order.end(.record(record))
            stack.removeLast()
        }
    }

    /// Returns what keeps the group back where one record is not sealed. A record of another group only does where this
    /// group was merged with that one, whose turn tells why.
    private func hindrance(
        _ found: Hindrance, of record: Unsealed, _ own: Set<RecordName>, _ batch: Batch
    ) throws -> Hindrance? {
        if own.contains(record.name) { return found }
        guard let named = batch.order.merged, try isMember(record, batch) else { return nil }
        return .blocked(by: Blocker(name: named, reason: .awaitingID))
    }

    private func isMember(_ record: Unsealed, _ batch: Batch) throws -> Bool {
        try batch.group != nil && record.table.group(db, record.key) == batch.group
    }

    /// A member whose last edit is still without a verdict.
    private func openMember(_ members: [Member], _ batch: Batch) throws -> Hindrance? {
        guard batch.hasOpen else { return nil }
        for member in members {
            guard let id = member.id else { continue }
            let record = Unsealed(table: member.table, key: member.key, id: id)
            guard !batch.order.isEarly(record.name), let outcome = try outcome(ofOpen: record) else { continue }
            if case .skip = outcome { return .skip }
            return .full
        }
        return nil
    }

    /// The members in the order of their marks, over all tables.
    func members(of group: String) throws -> [Member] {
        let members = try schema.shapes.flatMap { shape in
            let found = try ShadowTable(shape).members(db, of: group)
            guard !found.isEmpty else { return [Member]() }
            let table = RecordTable(shape)
            return found.map { Member(table: table, key: $0.key, id: shape.recordID($0.key), mark: $0.mark) }
        }
        return members.enumerated().sorted {
            ($0.element.mark ?? .max, $0.offset) < ($1.element.mark ?? .max, $1.offset)
        }.map(\.element)
    }

    // MARK: What stands in the way

    /// Whether an edit that came later has put members into several scopes, which are sent apart from each other.
    private func areApart(_ members: [Member]) throws -> Bool {
        var places: Set<String> = []
        for member in members {
            let shadow = try member.table.shadow(db, member.key)
            let row = try member.table.row(db, member.key)
            let shape = member.table.shape
            let place = shape.scope(ofKey: member.key, row ?? shadow?.cells ?? [])?.name ?? shadow?.scope
            // A row whose column names no scope is nowhere, and no scope's turn would ever come for it.
            if let place = place ?? (row == nil ? nil : "") { places.insert(place) }
        }
        return places.count > 1
    }

    private func isAnyOnItsWay(_ members: [Member]) throws -> Bool {
        try members.contains { member in
            guard let id = member.id, let shadow = try member.table.shadow(db, member.key) else { return false }
            return try isOnItsWay(member.table.shape, id, shadow)
        }
    }

    /// A group that lies in several scopes is none any more: its edits go one by one, each in its own scope.
    private func dissolve(_ group: String, _ batch: inout Batch) throws -> Outcome {
        try schema.rename(db, group: group, to: nil)
        batch.order.dissolved.insert(group)
        try Marks.announce(db)
        return .done
    }

    private func hindrance(_ record: Unsealed, after last: Int64) throws -> Hindrance? {
        if let blocker = try BlockedEdits.blocker(db, of: record.name) { return .blocked(by: blocker) }
        let (entity, id) = (record.table.shape.name, record.id)
        guard try Outbox.hasLocalRefusal(db, entity: entity, record: id.text, after: last) else { return nil }
        return .unsendable(Member(table: record.table, key: record.key, id: id))
    }

    /// The group stays together: when the edit at fault is mended, or the record waited for has its id, all go.
    private func refuse(
        _ members: [Member], _ hindrance: Hindrance, _ batch: inout Batch, _ group: String
    ) throws {
        switch hindrance {
        case .skip, .full, .behind: return
        case .blocked(let blocker):
            batch.hasBlocked = true
            for member in members {
                guard let name = member.name else { continue }
                try BlockedEdits.block(db, name, by: blocker)
                try member.table.unmark(db, member.key)
                try supersede(name, batch)
            }
        case .unsendable(let blocker):
            let others = members.filter { !$0.isSame(as: blocker) }
            for member in others {
                try refuse(
                    &batch, member.table, member.key, id: member.id,
                    why: "Another edit of the same group cannot be sent.")
            }
            // A forbidden edit is listed with a reason of its own, and undone at once.
            for member in [blocker] + others {
                guard try member.isSame(as: blocker) || isForbidden(member) else { continue }
                if let id = member.id {
                    _ = try sealRecord(&batch, Unsealed(table: member.table, key: member.key, id: id))
                } else {
                    try refuseKey(&batch, member.table, member.key)
                }
            }
            for member in others { try member.table.stayRefused(db, member.key) }
            for member in members {
                let record = member.id?.text ?? KeyText(member.key).text
                try Outbox.noteGroup(db, group, entity: member.table.shape.name, record: record)
            }
        }
    }

    /// Whether the operator's declarations forbid a member's edit. A new row that went with an undone insert is gone,
    /// and stays listed with its group.
    private func isForbidden(_ member: Member) throws -> Bool {
        let (table, key) = (member.table, member.key)
        guard let shadow = try table.shadow(db, key), try shadow.state != .absent || table.row(db, key) != nil
        else { return false }
        return forbidden(table.shape, isNew: shadow.state == .absent) != nil
    }

    // MARK: What one request carries

    /// Cuts the batch to a request's size. It is cut, never thinned, because a lane's numbers must not skip; and never
    /// inside a group.
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
            // The first unit goes, however large: it would stop everything behind it.
            let fits = bytes + size <= byteLimit + recordByteLimit && taken + unit.count <= operationLimit
            guard fits || taken == 0 else { break }
            (taken, bytes) = (taken + unit.count, bytes + size)
        }
        return Array(entries.prefix(taken))
    }
}
