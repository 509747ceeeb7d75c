import Foundation
import GRDB
import TidemarkCore
import TidemarkWire

/// The one transaction in which writes that no trigger saw become edits, conflicts or nothing, by the server's rows.
struct InferenceTransaction: Sendable {
    var entries: [Inferred.Entry]
    /// The server's rows; `nil` where it hands out nothing of the table.
    var fetched: FetchedRecords?
    /// Where the scope stood when the server was asked.
    var since: String?
    /// The checkpoint is too old for the server to tell which records were deleted.
    var isBelowFloor = false
    var scope: Scope
    var schema: SyncSchema
    var declarations: Declarations
    var now: Int64

    init(entries: [Inferred.Entry], scope: Scope, schema: SyncSchema, declarations: Declarations, now: Int64) {
        (self.entries, self.scope, self.schema) = (entries, scope, schema)
        (self.declarations, self.now) = (declarations, now)
    }

    /// Runs on the writer, outside any transaction. Returns how many records were resolved, and how many conflicts were
    /// listed: those that the app decides, and rows of the first capture that gave way.
    func run(_ db: Database) throws -> (records: Int, conflicts: Int) {
        var resolved = (records: 0, conflicts: 0)
        _ = try ApplyTransaction.withoutForeignKeys(db) {
            try schema.check(db, scope)
            try CaptureSuppression.whileApplying(db, schema) { resolved = try resolve(db) }
            try Marks.announce(db)
            return Applier.Outcome()
        }
        return resolved
    }

    private func resolve(_ db: Database) throws -> (records: Int, conflicts: Int) {
        let record = try ScopeRecord.read(db, scope)
        let applier = try Applier(
            db, schema: schema, record: record, declarations: declarations, now: now, keepsFirstCapture: true)
        var resolved = 0
        guard let fetched else {
            try takeApart(db)
            for entry in entries { resolved += try applier.resolve(entry, .untold, isBelowFloor: false) ? 1 : 0 }
            try applier.finish()
            return (resolved, applier.outcome.conflicts)
        }
        guard since == record.checkpoint else { return (0, 0) }
        if fetched.head == 0 {
            resolved += try applier.insertSeeds()
        } else {
            try FirstCapture.materialize(db, schema, writing: nil)
        }
        try takeApart(db)
        // Versions of a history that this device does not know cannot be compared with its own.
        let isComparable = try fetched.epoch.map { try applier.goOnWhereKept(in: $0) } ?? true
        try fetched.visitAll { change, reader, _ in
            let id = reader.string(change.id)
            guard let table = applier.tables[reader.string(change.entity)],
                let entry = try Inferred.entry(db, scope, table.shape.name, id)
            else {
                return
            }
            let server: Applier.ServerSide
            switch change.kind {
            case .upsert:
                let cells = try table.cells(change, reader)
                server = .row(
                    version: isComparable ? change.version : .max, cells: cells,
                    data: try change.data.map { try DataObject(stored: Array(reader.bytes[$0])) } ?? .empty)
            case .delete: server = .deleted(version: change.version)
            case .absent: server = .absent
            case .idmap, .unknown: return
            }
            resolved += try applier.resolve(entry, server, isBelowFloor: isBelowFloor) ? 1 : 0
        }
        try applier.finish()
        return (resolved, applier.outcome.conflicts)
    }

    /// The records of the question are held against the server's one by one.
    private func takeApart(_ db: Database) throws {
        if let shape = entries.first.flatMap({ schema[$0.entity] }) { try FirstCapture.takeApart(db, shape) }
    }
}

extension Applier {
    /// A record as the server has it.
    enum ServerSide {
        case row(version: Version, cells: [Int: Cell], data: DataObject)
        case deleted(version: Version)
        case absent
        /// The server does not tell.
        case untold
    }

    /// Makes an edit, a conflict or nothing of one write that no trigger saw; `false` where that was done already.
    func resolve(_ entry: Inferred.Entry, _ server: ServerSide, isBelowFloor: Bool) throws -> Bool {
        guard try Inferred.entry(db, scope, entry.entity, entry.record) != nil else { return false }
        guard let table = tables[entry.entity], let id = RecordID(entry.record), let key = table.shape.key(of: id)
        else {
            try Inferred.compared(db, entry, waits: false)
            return true
        }
        manifest.look(entry.entity, id)
        let unseen = Unseen(
            entry: entry, table: table, id: id, key: key, current: try current(table, id, key),
            unfetched: try Backfills.columns(db, scope, table.shape), isEvent: declared(entry.entity).kind == .events)
        let waits = try resolve(unseen, server, isBelowFloor: isBelowFloor)
        try Inferred.compared(db, entry, waits: waits)
        return true
    }

    /// Returns the row that an unseen write has left in this scope, in the table or kept off it with its edits.
    private func current(_ table: ApplyTable, _ id: RecordID, _ key: [Cell]) throws -> [Cell]? {
        let (records, shape) = (table.records, table.shape)
        // A row whose move was captured since belongs to this scope until the move is sent.
        if let row = try records.row(db, key), try shape.scope(ofKey: key, row) == scope || isOwnRow(table, key) {
            return row
        }
        return try QuarantinedRow.edited(db, shape, id, records.shadow(db, key), scope.name)
    }

    struct Unseen {
        var entry: Inferred.Entry
        var table: ApplyTable
        var id: RecordID
        var key: [Cell]
        var current: [Cell]?
        /// Columns that a migration has added, and whose values a ``Backfill`` brings: what stands there is no edit.
        var unfetched: [Int]
        var isEvent: Bool
        var shape: TableSchema { table.shape }

        func hash(of cells: [Cell]) -> UInt64 { RowHash(shape).hash(PackedID.encode(id), cells) }
    }

    /// Returns whether it waits for a confirmation.
    private func resolve(_ unseen: Unseen, _ server: ServerSide, isBelowFloor: Bool) throws -> Bool {
        // An event may leave this device to save room; the log keeps it.
        if unseen.isEvent, unseen.current == nil { return false }
        switch server {
        case .row(let version, let cells, let data):
            let known = try KnownVersions.version(db, scope, unseen.shape.name, unseen.id.text) ?? -1
            var whole = unseen.shape.data.map(\.defaultCell)
            for (index, cell) in unseen.shape.whole(cells, in: scope) { whole[index] = cell }
            if let current = unseen.current {
                for index in unseen.unfetched { whole[index] = current[index] }
            }
            if unseen.entry.kind == .seed {
                try giveWay(unseen, version: version, cells)
                return false
            }
            if version <= max(record.base, known) { return try edit(unseen, base: whole) }
            if unseen.current != whole, unseen.entry.kind != .update || !isUntouched(unseen, data) {
                try meet(unseen, whole, version: version)
            }
            try takeServers(unseen, version: version, cells)
            return false
        case .deleted(let version):
            try keepDeleted(unseen.table, unseen.id, unseen.key)
            try noteTombstone(unseen.table, unseen.id, unseen.key, version: version)
            guard unseen.entry.kind == .seed else {
                try orphan(unseen, "It was deleted elsewhere.")
                try takeServers(unseen, version: version, nil)
                return false
            }
            try giveWay(unseen, toDeletion: version)
            return false
        case .absent where isBelowFloor && unseen.entry.kind != .seed:
            try orphan(unseen, "The server does not know any more whether it was deleted.")
            try takeServers(unseen, version: 0, nil)
            return false
        case .absent, .untold: return try insert(unseen, isKnown: unseen.current == nil)
        }
    }

    /// Makes the write that no trigger saw an edit of the server's row.
    private func edit(_ unseen: Unseen, base: [Cell]) throws -> Bool {
        let known = try unseen.table.records.shadow(db, unseen.key)
        // An operation on its way is about to change the server's row, and this edit may take it back.
        guard try unseen.current != base || isOnItsWay(unseen) else {
            if known != nil { try unseen.table.records.forget(db, unseen.key, unseen.id) }
            return false
        }
        var shadow = known ?? Shadow(state: .known, cells: base)
        shadow.learn(base)
        shadow.version = nil
        return try write(shadow, unseen)
    }

    /// The server has no such record: it was made here.
    private func insert(_ unseen: Unseen, isKnown: Bool) throws -> Bool {
        let known = try unseen.table.records.shadow(db, unseen.key)
        if unseen.entry.kind == .seed {
            // The row went unseen too: nothing is left to send.
            guard known != nil || unseen.current != nil else { return false }
            return try write(seed(unseen, known), unseen)
        }
        // If a captured delete followed an update of a server's record, the server may have lost the record and get it
        // again.
        let wasServers = unseen.entry.kind == .update && known?.state == .known
        if unseen.current == nil, unseen.entry.kind != .delete, !wasServers, try !isOnItsWay(unseen) {
            // The row was made and taken away again before any server heard of it.
            if known != nil { try unseen.table.records.forget(db, unseen.key, unseen.id) }
            return false
        }
        let nothing = unseen.shape.data.map { _ in Cell.null }
        var shadow = known ?? Shadow(state: .absent, cells: nothing)
        shadow.state = isKnown ? .known : .absent
        // A delete in sight noted the row as it stood then, which the server may never have had: it was written unseen.
        if isKnown, unseen.entry.hash.map({ unseen.hash(of: shadow.cells) != $0 }) ?? (known == nil) {
            shadow.cells = nothing
            shadow.bases[Shadow.unknownBase] = 0
        }
        return try write(shadow, unseen)
    }

    private func isOnItsWay(_ unseen: Unseen) throws -> Bool {
        try !Outbox.open(db, entity: unseen.shape.name, record: unseen.id.text, scope: scope.name).isEmpty
    }

    func write(_ shadow: Shadow, _ unseen: Unseen) throws -> Bool {
        var shadow = shadow
        let waits = unseen.entry.awaitsConfirmation && shadow.mark == nil
        shadow.isGone = unseen.current == nil
        if !waits {
            shadow.mark = try shadow.mark ?? Marks.next(db)
            shadow.since = shadow.since ?? now
        }
        let isSent = shadow.state != .absent
        try unseen.table.records.writeShadow(
            db, unseen.key, placed(shadow, unseen.shape, unseen.key, unseen.current, isSent: isSent))
        outcome.editsMade += 1
        return waits
    }

    /// Whether the row is as this device last had it, and only the server's is another: the columns that the table has
    /// lost since are taken from the server's row.
    private func isUntouched(_ unseen: Unseen, _ data: DataObject) -> Bool {
        guard let expected = unseen.entry.hash, let current = unseen.current else { return false }
        let weight = RowHash(unseen.shape).weight(PackedID.encode(unseen.id))
        var lost: UInt64 = 0
        for field in data.fields where unseen.shape.dataIndex(canonical: data.name(field)) == nil {
            guard let value = data.decoded(field) else { continue }
            lost &+= weight &* RowHash.content(of: data.name(field), Cell(value))
        }
        var old = current
        for index in unseen.unfetched { old[index] = .null }
        return [current, old].map(unseen.hash).contains { $0 == expected || $0 &+ lost == expected }
    }

    /// Notes a conflict of two sides that have both changed the record: the app decides. The row is the server's until
    /// then.
    private func meet(_ unseen: Unseen, _ theirs: [Cell], version: Version) throws {
        let fields = unseen.shape.data.indices.filter { unseen.current?[$0] != theirs[$0] }.map { index in
            Conflict.Field(
                name: unseen.shape.data[index].name, mine: unseen.current?[index].value, theirs: theirs[index].value,
                result: nil)
        }
        var conflict = Conflict(
            id: 0, scope: scope, entity: unseen.shape.name, record: unseen.id.text, rule: .manual, fields: fields,
            noticedAt: Date(milliseconds: now))
        conflict.isOpen = true
        conflict.isDelete = unseen.current == nil
        conflict.version = version == .max ? nil : version
        conflict.whole = unseen.current.map { unseen.shape.values($0) }
        try Conflicts.add(db, conflict)
        outcome.conflicts += 1
    }

    func orphan(_ unseen: Unseen, _ reason: String) throws {
        guard let current = unseen.current else { return }
        let fields = Dictionary(uniqueKeysWithValues: current.enumerated().map { ($0, $1) })
        try OrphanedEdits.add(db, scope, unseen.shape, unseen.id, .revival, fields: fields, reason: reason, now: now)
    }

    /// Replaces the unseen write with the server's row, overlaid with the operation in flight.
    func takeServers(_ unseen: Unseen, version: Version, _ cells: [Int: Cell]?) throws {
        let (table, id, key) = (unseen.table, unseen.id, unseen.key)
        let found = try table.records.shadow(db, key)
        if let found {
            // Moved since, the row stands where no page of this scope would find it.
            if found.scope == scope.name, let current = unseen.current, table.shape.scope(ofKey: key, current) != scope
            {
                try table.records.attemptDelete(db, key)
            }
            try table.records.forget(db, key, id)
        }
        let version = try noteKnownVersion(unseen, version, isDeleted: cells == nil)
        guard let operation = try Outbox.overlay(db, entity: table.shape.name, record: id.text, scope: scope.name)
        else {
            return try applyServerRow(table, id, key, version: version, incoming: cells)
        }
        let (current, isQuarantined) = try visible(table, id, key, nil)
        var serverRow = found ?? Shadow(state: .absent, cells: table.shape.data.map(\.defaultCell))
        (serverRow.mark, serverRow.since) = (nil, nil)
        if let cells {
            serverRow.update(with: cells, version: version, shape: table.shape, current: current)
        } else if serverRow.state == .known {
            (serverRow.state, serverRow.version) = (
                .deleted, max(0, min(serverRow.version ?? record.complete ?? 0, version - 1))
            )
        }
        try overlay(table, id, key, serverRow, operation, .none, current: current, isQuarantined: isQuarantined)
    }

    /// Remembers the version of a row that came ahead of its page. A version of a history that this device does not
    /// know cannot be compared with its own: it counts as 0, so that any version is newer.
    func noteKnownVersion(_ unseen: Unseen, _ version: Version, isDeleted: Bool) throws -> Version {
        guard version < .max else { return 0 }
        if version > record.base {
            try KnownVersions.note(db, scope, unseen.shape.name, unseen.id.text, version, deleted: isDeleted)
        }
        return version
    }
}
