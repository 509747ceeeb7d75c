import Foundation
import GRDB
import TidemarkWire

/// An operation and the row that it was made on, as the file knows them before the verdict changes anything.
struct Meeting {
    let entry: OutboxEntry
    let operation: TidemarkWire.Operation
    let shape: TableSchema
    let shadow: Shadow
    let current: [Cell]?

    func base(of field: String) -> Value? {
        guard operation.baseVersion != nil, shadow.state != .absent else { return nil }
        if let original = shadow.originals[field] { return original.value }
        // The present cells are no base where the edit was made on no row or on a deleted one: they came under it
        // later.
        guard let index = shape.dataIndex(field),
            operation.base(ofField: shape.data[index].canonicalName) == operation.baseVersion
        else { return nil }
        return shadow.cells[index].value
    }

    func mine(_ field: String) -> Value? { operation.fields.value(field) }

    /// The name of the column that a field goes into.
    func column(_ field: String) -> String { shape.dataIndex(field).map { shape.data[$0].name } ?? field }

    /// The whole row as it was meant here.
    var whole: [String: Value]? {
        (current ?? shadow.overlaid(with: operation, shape: shape)).map { shape.values($0) }
    }
}

extension TableSchema {
    func values(_ cells: [Cell]) -> [String: Value] {
        Dictionary(zip(data.map(\.name), cells.map(\.value)), uniquingKeysWith: { $1 })
    }
}

// MARK: - Told by a verdict

extension Applier {
    /// Writes down what a verdict says of edits that met: one entry for each rule by which something was resolved.
    func noteConflicts(_ verdict: Verdict, _ meeting: Meeting) throws {
        var conflicts: [Conflict] = []
        for overwrite in verdict.overwrites {
            let name = meeting.column(overwrite.field)
            let (base, mine) = (meeting.base(of: name), meeting.mine(name))
            // A server without a version per field names every field of a row that somebody wrote to. A field that
            // still held this edit's base is in no conflict.
            if let base, base == overwrite.theirs { continue }
            add(
                Conflict.Field(
                    name: name, base: base, mine: mine,
                    theirs: overwrite.theirs, result: mine),
                to: &conflicts, overwrite.rule, meeting, version: overwrite.version)
        }
        for loss in verdict.losses {
            guard let field = loss.field else {
                conflicts.append(
                    loss.rule == .firstCapture ? goneSeed(verdict, meeting) : lostDelete(verdict, meeting, loss.rule))
                continue
            }
            let result = verdict.record?.data?.value(field)
            add(
                Conflict.Field(
                    name: meeting.column(field), base: meeting.base(of: field),
                    mine: meeting.mine(meeting.column(field)), theirs: result, result: result),
                to: &conflicts, loss.rule, meeting, version: verdict.record?.version)
        }
        if let tombstone = verdict.revived {
            var conflict = whole(meeting, .editWins, result: verdict.record?.data)
            conflict.isDeletedElsewhere = true
            conflict.version = tombstone
            conflicts.append(conflict)
        }
        if let open = refused(verdict, meeting) { conflicts.append(open) }
        for var conflict in conflicts {
            conflict.theirsAt = verdict.theirsAt.map(Date.init(milliseconds:))
            conflict.editedAt = try Outbox.editedAt(db, meeting.entry).map(Date.init(milliseconds:))
            try Conflicts.add(db, conflict)
        }
    }

    private func add(
        _ field: Conflict.Field, to conflicts: inout [Conflict], _ rule: ConflictRule, _ meeting: Meeting,
        version: Version?
    ) {
        if let index = conflicts.firstIndex(where: { $0.rule == rule && !$0.isDelete }) {
            conflicts[index].fields.append(field)
            conflicts[index].version = [conflicts[index].version, version].compactMap { $0 }.max()
        } else {
            var conflict = entry(meeting, rule, [field])
            conflict.version = version
            conflicts.append(conflict)
        }
    }

    private func entry(_ meeting: Meeting, _ rule: ConflictRule, _ fields: [Conflict.Field]) -> Conflict {
        Conflict(
            id: 0, scope: scope, entity: meeting.entry.entity, record: meeting.entry.record, rule: rule, fields: fields,
            noticedAt: Date(milliseconds: now))
    }

    /// An entry of all the operation's fields, with the row as it was meant here.
    private func whole(_ meeting: Meeting, _ rule: ConflictRule, result: DataObject?) -> Conflict {
        let fields = meeting.operation.fields
        var conflict = entry(
            meeting, rule,
            fields.fields.map { field in
                let name = fields.nameString(field)
                return Conflict.Field(
                    name: name, base: meeting.base(of: name), mine: fields.decoded(field), theirs: nil,
                    result: result?.value(name))
            })
        conflict.whole = meeting.whole
        return conflict
    }

    /// The record was deleted here, but somebody had edited it, and edits win.
    private func lostDelete(_ verdict: Verdict, _ meeting: Meeting, _ rule: ConflictRule) -> Conflict {
        let record = verdict.record?.data ?? .empty
        var fields: [Conflict.Field] = []
        for field in record.fields {
            let name = record.nameString(field)
            let (base, theirs) = (meeting.base(of: name), record.decoded(field))
            guard base != theirs, meeting.shape.dataIndex(name) != nil else { continue }
            fields.append(
                Conflict.Field(name: meeting.column(name), base: base, mine: nil, theirs: theirs, result: theirs))
        }
        var conflict = entry(meeting, rule, fields)
        conflict.isDelete = true
        conflict.version = verdict.record?.version
        return conflict
    }

    /// A row from before the first capture met a deletion, and gave way.
    private func goneSeed(_ verdict: Verdict, _ meeting: Meeting) -> Conflict {
        var conflict = whole(meeting, .firstCapture, result: nil)
        conflict.isDeletedElsewhere = true
        conflict.version = verdict.record?.version
        return conflict
    }

    /// An edit of a record that is deleted, or one that the app has to decide about.
    private func refused(_ verdict: Verdict, _ meeting: Meeting) -> Conflict? {
        let isOpen = verdict.status == .conflict
        guard isOpen || verdict.refusal?.code == RejectionCode.recordDeleted else { return nil }
        var conflict = whole(meeting, isOpen ? .manual : .deleteWins, result: nil)
        conflict.isOpen = isOpen
        conflict.operation = meeting.entry.id
        conflict.version = verdict.record?.version
        conflict.isDeletedElsewhere = verdict.record?.data == nil
        if isOpen, let theirs = verdict.record?.data {
            for index in conflict.fields.indices {
                conflict.fields[index].theirs = theirs.value(conflict.fields[index].name) ?? .null
            }
        }
        return conflict
    }
}

// MARK: - Told by a page

extension Applier {
    /// A delete came that had not seen edits of this device which the server had taken: they are listed as lost.
    func noteLostEdits(_ table: ApplyTable, _ record: String, unseenSince base: Version, version: Version) throws {
        let name = RecordName(entity: table.shape.name, record: record)
        var taken = try Outbox.taken(db, entity: table.shape.name, record: record, scope: scope, after: base)
        taken = (try packed.operations(on: name, after: base) + taken).sorted { $0.id < $1.id }
        try noteLost(taken, table, record, version: version)
    }

    /// The server does not have a record of which this device was never told what became of its edits. They were
    /// refused since the record was deleted, or deleted with it, and the server has forgotten which: they are listed as
    /// lost, unless this device has deleted the record itself.
    func noteUntoldEdits(_ table: ApplyTable, _ record: String, version: Version) throws {
        let untold = try Outbox.untold(db, entity: table.shape.name, record: record, scope: scope)
        let edits = try untold.filter { try !$0.operation().isSeed }
        try noteLost(edits, table, record, version: version)
        for entry in untold { try Outbox.removeUntold(db, id: entry.id) }
    }

    /// Lists edits of a record that was deleted elsewhere as one conflict.
    private func noteLost(_ edits: [OutboxEntry], _ table: ApplyTable, _ record: String, version: Version) throws {
        var mine: [String: Value] = [:]
        for entry in edits { mine.merge(try entry.operation().fields.values) { $1 } }
        let fields = mine.sorted { $0.key < $1.key }.map {
            Conflict.Field(name: $0.key, mine: $0.value, theirs: nil, result: nil)
        }
        guard !fields.isEmpty else { return }
        var conflict = Conflict(
            id: 0, scope: scope, entity: table.shape.name, record: record, rule: .deleteWins, fields: fields,
            isDeletedElsewhere: true, version: version, noticedAt: Date(milliseconds: now))
        if let key = RecordID(record).flatMap({ table.shape.key(of: $0) }) {
            conflict.whole = try table.records.row(db, key).map { table.shape.values($0) }
        }
        try Conflicts.add(db, conflict)
    }
}
