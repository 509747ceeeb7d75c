import GRDB
import TidemarkWire

/// Makes edits anew that were orphaned.
struct OrphanReplay {
    let db: Database
    let schema: SyncSchema
    let scope: Scope
    /// Edits of records since they were orphaned, as they stood before any of those was made anew: an edit that was
    /// orphaned later than another one of its record overlays that one.
    private var since: [RefetchQueue.Record: LocalDelta] = [:]

    init(db: Database, schema: SyncSchema, scope: Scope) { (self.db, self.schema, self.scope) = (db, schema, scope) }

    private struct Edit {
        var entry: OrphanedEdits.Entry
        var table: RecordTable
        var id: RecordID
        var key: [Cell]
    }

    /// Makes an edit, or those of a group: all of them are made, or none. Returns how many.
    mutating func make(_ entries: [OrphanedEdits.Entry]) throws -> Int {
        let edits = entries.compactMap(edit)
        // An edit of a table that this engine does not name keeps its whole group orphaned.
        guard edits.count == entries.count, !edits.allSatisfy(isRest) else { return 0 }
        var refusal: (entry: OrphanedEdits.Entry, reason: String)?
        try db.inSavepoint {
            for edit in edits {
                do {
                    if let reason = try redo(edit) { refusal = (edit.entry, reason) }
                } catch let error as DatabaseError where error.refusesRow {
                    refusal = (edit.entry, error.refusal)
                }
                if refusal != nil { return .rollback }
            }
            if edits.contains(where: { $0.entry.group != nil }) { try group(edits) }
            for edit in edits { try keepRest(edit) }
            return .commit
        }
        guard let refusal else { return edits.count }
        for entry in entries {
            let reason =
                entry.id == refusal.entry.id ? refusal.reason : "Another edit of its group cannot be replayed."
            // This is tried again at every poll, which must not write where nothing is new.
            guard entry.reason != reason else { continue }
            try OrphanedEdits.noteRefusal(db, entry.id, reason)
        }
        return 0
    }

    /// Whether none of the columns that were edited is in the table any more.
    private func isRest(_ edit: Edit) -> Bool {
        edit.entry.kind == .update && edit.entry.fields.cells(in: edit.table.shape).isEmpty
    }

    /// Keeps edits of columns that a migration has removed or renamed since in the list.
    private func keepRest(_ edit: Edit) throws {
        let fields = edit.entry.fields
        let rest = fields.filter { edit.table.shape.dataIndex(canonical: fields.name($0)) == nil }
        guard let first = rest.fields.first else { return try OrphanedEdits.remove(db, edit.entry.id) }
        try OrphanedEdits.keep(
            db, edit.entry.id, only: rest,
            reason: "The table has no column '\(rest.nameString(first))' any more.")
    }

    private func edit(_ entry: OrphanedEdits.Entry) -> Edit? {
        guard let shape = schema[entry.entity], shape.rule.mayHaveRows(in: scope), let id = RecordID(entry.record),
            let key = shape.key(of: id)
        else { return nil }
        return Edit(entry: entry, table: RecordTable(shape), id: id, key: key)
    }

    /// Puts the edits into a group again, under a name that no server has answered yet.
    private func group(_ edits: [Edit]) throws {
        let group = randomHex(bytes: 8)
        for edit in edits where try edit.table.shadow(db, edit.key)?.mark != nil {
            if let earlier = try edit.table.group(db, edit.key), earlier != group {
                try schema.rename(db, group: earlier, to: group)
            }
            try edit.table.setGroup(db, edit.key, group)
        }
    }

    /// Returns why it cannot be done; `nil` where it is.
    private mutating func redo(_ edit: Edit) throws -> String? {
        let (table, key, shape) = (edit.table, edit.key, edit.table.shape)
        let row = try table.row(db, key)
        let isHere = row.map { shape.scope(ofKey: key, $0) == scope } ?? false
        if row == nil, edit.entry.kind != .delete, edit.entry.kind != .departure,
            let shadow = try table.shadow(db, key),
            try QuarantinedRow.edited(db, shape, edit.id, shadow, shadow.place(in: scope)) != nil
        {
            return "The record was edited since, and is quarantined."
        }
        let since = try editedSince(edit, row)
        if edit.entry.kind.isSuperseded(by: since) { return nil }
        let isElsewhere = row != nil && !isHere
        switch edit.entry.kind {
        case .delete:
            if isHere { return try redo(edit, row, as: nil) }
            try deleteOffScreen(edit)
            return nil
        case .departure: return try depart(edit)
        case .insert where isElsewhere, .revival where isElsewhere, .seed where isElsewhere:
            return "The record stands in another scope now."
        case .update where !isHere: return "The record is not there any more."
        case .seed:
            try seed(edit, under: row)
            return nil
        case .insert, .arrival, .revival, .update:
            var cells = row ?? shape.data.map(\.defaultCell)
            for (index, cell) in edit.entry.fields.cells(in: shape) where since.fields[index] == nil {
                cells[index] = cell
            }
            // An edit that was made for this scope goes to no other one, even if the table's rule has changed since.
            guard shape.scope(ofKey: key, cells) == scope else {
                return "By its table's rule the row would be in another scope now."
            }
            return try redo(edit, row, as: cells)
        }
    }

    /// Writes or deletes the row, as an edit of this device. Where the app's triggers write to synced tables, what they
    /// made of other rows is an edit of its own, and of this row part of the edit: they fire, and the rows stay as they
    /// are. Returns why it cannot be done; `nil` where it is.
    private func redo(_ edit: Edit, _ row: [Cell]?, as cells: [Cell]?) throws -> String? {
        let (table, key, shape) = (edit.table, edit.key, edit.table.shape)
        // The rows that a foreign key's action changes have to be captured.
        let hasActions = try ConnectionSwitch.foreignKeys.isOn(db)
        guard schema.shapes.contains(where: \.isGuarded), !hasActions else {
            let isDone =
                try cells.map { try table.writeCaptured(db, key, $0) } ?? table.deleteCaptured(db, key)
            return isDone ? nil : "A trigger of the app's skips it."
        }
        guard cells != row else { return nil }
        var shadow = try table.shadow(db, key) ?? Self.unedited(shape, key, row)
        shadow.isGone = cells == nil
        if shape.isScopedByColumn { shadow.routingScope = scope.name }
        try CaptureSuppression.whileApplying(db, schema) {
            if let cells { try table.writeRow(db, key, cells) } else { try table.deleteRow(db, key) }
        }
        try db.execute(sql: CaptureTriggers.count)
        shadow.edited = try Marks.clock(db)
        try table.writeShadow(db, key, shadow)
        try table.mark(db, key)
        return nil
    }

    /// Replays a row of the first capture, which no server has answered yet, or a row that a server had taken and lost.
    /// It gives way to what came meanwhile.
    private func seed(_ edit: Edit, under row: [Cell]?) throws {
        let (table, shape) = (edit.table, edit.table.shape)
        var cells = row ?? shape.data.map(\.defaultCell)
        for (index, cell) in edit.entry.fields.cells(in: shape) { cells[index] = cell }
        if let row {
            let conflict = Conflict(seed: cells, of: shape, edit.id, in: scope, under: row, at: edit.entry.notedAt)
            if !conflict.fields.isEmpty { try Conflicts.add(db, conflict) }
            return
        }
        var shadow = Shadow(state: .absent, cells: cells, edited: Shadow.seedStamp)
        shadow.bases = [Shadow.seedBase: 0]
        (shadow.mark, shadow.since) = (try Marks.next(db), edit.entry.notedAt)
        if shape.isScopedByColumn { (shadow.scope, shadow.routingScope) = (scope.name, scope.name) }
        try CaptureSuppression.whileApplying(db, schema) { try table.writeRow(db, edit.key, cells) }
        try table.writeShadow(db, edit.key, shadow)
    }

    private static func unedited(_ shape: TableSchema, _ key: [Cell], _ row: [Cell]?) -> Shadow {
        var shadow = Shadow(unedited: row, of: shape)
        if shape.isScopedByColumn { shadow.scope = row.flatMap { shape.scope(ofKey: key, $0)?.name } }
        return shadow
    }

    /// Returns the edits of the record since this one was orphaned: they are newer, and stand.
    private mutating func editedSince(_ edit: Edit, _ row: [Cell]?) throws -> LocalDelta {
        let record = RefetchQueue.Record(entity: edit.table.shape.name, id: edit.id)
        if let known = since[record] { return known }
        var edits = LocalDelta.none
        if let shadow = try edit.table.shadow(db, edit.key), shadow.scope == nil || shadow.scope == scope.name {
            edits = LocalDelta(shape: edit.table.shape, shadow: shadow, operation: nil, current: row, reserved: [])
        }
        since[record] = edits
        return edits
    }

    /// Deletes this scope's row of a record where it is not on screen: another scope's row or another record has its
    /// place.
    private func deleteOffScreen(_ edit: Edit) throws {
        let (table, key, shape) = (edit.table, edit.key, edit.table.shape)
        guard let quarantined = try QuarantinedRow.entry(db, shape, edit.id, scope.name), quarantined.move == .no else {
            return
        }
        if try table.owner(db, key) != nil {
            return try leave(edit, quarantined.cells, quarantined.version, as: .deleted)
        }
        guard try table.shadow(db, key) == nil else { return }
        var shadow = Shadow(state: .known, cells: quarantined.cells, version: quarantined.version)
        (shadow.mark, shadow.since) = (try Marks.next(db), edit.entry.notedAt)
        if shape.isScopedByColumn { (shadow.scope, shadow.routingScope) = (scope.name, scope.name) }
        try QuarantinedRow.remove(db, shape.name, edit.id.text, scope.name)
        try table.writeShadow(db, key, shadow)
    }

    /// The record had moved on: this scope's row of it goes, as long as another scope has it for certain. Where none
    /// does, it was refused there or lost with that scope, and this row is all that is left of it.
    private func depart(_ edit: Edit) throws -> String? {
        let (table, key, shape) = (edit.table, edit.key, edit.table.shape)
        let shadow = try table.shadow(db, key)
        guard let owner = try table.owner(db, key) else { return nil }
        guard owner == scope.name else {
            guard let quarantined = try QuarantinedRow.entry(db, shape, edit.id, scope.name), quarantined.move == .no
            else {
                return nil
            }
            guard shadow.map({ $0.state == .known }) ?? true else {
                return "The scope that it moved to has not taken it yet."
            }
            try leave(edit, quarantined.cells, quarantined.version, as: .moved)
            return nil
        }
        guard shadow == nil, let row = try table.row(db, key),
            try QuarantinedRow.isContending(db, edit.entry.entity, edit.entry.record, besides: scope)
        else { return nil }
        try CaptureSuppression.whileApplying(db, schema) {
            try table.deleteRow(db, key)
            try leave(edit, row, KnownVersions.version(db, scope, shape.name, edit.id.text), as: .moved)
            _ = try UniqueResolver(db: db, table: table).resolve()
        }
        return nil
    }

    private func leave(_ edit: Edit, _ cells: [Cell], _ version: Version?, as move: QuarantinedRow.Move) throws {
        let shape = edit.table.shape
        let base = try version ?? ScopeRecord.read(db, scope).base(of: shape.name)
        try QuarantinedRow.leave(db, shape, edit.id, from: scope.name, cells: cells, version: version, base: base)
        try QuarantinedRow.set(db, shape.name, edit.id.text, scope.name, move)
        try Marks.announce(db)
    }
}

extension OrphanedEdits.Stored {
    /// Whether what was done to the record since is newer, and says all that this edit would say.
    fileprivate func isSuperseded(by since: LocalDelta) -> Bool {
        switch self {
        case .delete: !since.isEmpty
        case .seed: since != .none
        case .insert, .arrival, .revival: since == .deleted
        case .update, .departure: false
        }
    }
}
