import Foundation
import GRDB
import TidemarkWire

// MARK: - Edits that the operator's declarations keep on this device

extension OutboxBatcher {
    /// `true` where an edit stays on this device by what is declared of its table.
    func keepHere(
        _ batch: Batch, _ declared: EntityDeclaration, _ table: RecordTable, _ key: [Cell], _ id: RecordID,
        _ shadow: Shadow, _ current: [Cell]?
    ) throws -> Bool {
        guard let forbidden = forbidden(table.shape, isNew: shadow.state == .absent) else { return false }
        let serverRow = shadow.state == .known ? shadow.cells : nil
        // An event may leave this device to save room; the log keeps it. And what stood in a table that is only pulled
        // before the first pull came with the app: the server's rows take its place.
        let isPruned = declared.kind == .events && current == nil
        let isSeed = declared.direction == .pull && shadow.state == .absent && scope.complete == nil
        guard current != serverRow, !isPruned, !isSeed else {
            try table.dropShadow(db, key)
            if isPruned {
                try Manifest(db: db, scope: scope.scope, entity: table.shape.name).remove(id)
            }
            return true
        }
        try listForbidden(forbidden, table, id, shadow, current)
        try restore(batch, table, key, id, shadow)
        return true
    }

    /// Fields that only the server may write go back to what they were, uncaptured: they are never sent. In a record
    /// that is new they are as the server leaves them, at their defaults.
    func restoreReserved(
        _ reserved: Set<String>, _ table: RecordTable, _ key: [Cell], _ id: RecordID, _ current: [Cell],
        _ shadow: Shadow, isMove: Bool
    ) throws {
        guard !reserved.isEmpty, shadow.state != .deleted, try table.row(db, key) != nil else { return }
        let isNew = shadow.state == .absent
        var restored = current
        var fields: [Conflict.Field] = []
        for (index, column) in table.shape.data.enumerated() where reserved.contains(column.name) {
            if isNew, !column.returnsToDefault { continue }
            let cell = isNew ? column.defaultCell : shadow.cells[index]
            guard cell != current[index] else { continue }
            restored[index] = cell
            fields.append(
                Conflict.Field(
                    name: column.name, base: isNew ? nil : cell.value, mine: current[index].value, theirs: cell.value,
                    result: cell.value))
        }
        guard !fields.isEmpty else { return }
        try ConnectionSwitch.foreignKeys.turnOff(db)
        guard !isMove else {
            // A row that finds no place as it should be keeps what was written, since the move still needs it here.
            do {
                try CaptureSuppression.whileApplying(db, schema) { try table.writeRow(db, key, restored) }
            } catch let error as DatabaseError where error.refusesRow {}
            return
        }
        try CaptureSuppression.whileApplying(db, schema) {
            try table.writeOrQuarantine(db, key, id, restored, scope: shadow.scope ?? scope.scope.name)
        }
        try Conflicts.add(
            db,
            Conflict(
                id: 0, scope: scope.scope, entity: table.shape.name, record: id.text, rule: .serverFields,
                fields: fields, editedAt: shadow.since.map(Date.init(milliseconds:)),
                noticedAt: Date(milliseconds: now)))
    }

    /// Why the operator lets no edit of a row travel.
    enum Forbidden {
        case event, pullOnly
    }

    /// - Parameter isNew: whether the server has no such row, as far as is known.
    func forbidden(_ shape: TableSchema, isNew: Bool) -> Forbidden? {
        let declared = declarations.entity(shape.name)
        if declared.kind == .events, !isNew { return .event }
        return declared.direction == .pull ? .pullOnly : nil
    }

    private func listForbidden(
        _ forbidden: Forbidden, _ table: RecordTable, _ id: RecordID, _ shadow: Shadow, _ current: [Cell]?
    ) throws {
        let shape = table.shape
        guard var operation = edit(shape, id, shadow, current, [], base: 0) else { return }
        if operation.fields.bytes.count > recordByteLimit { operation.fields = .empty }
        switch forbidden {
        case .event:
            try Outbox.refuse(
                db, operation, record: id.text, scope: scope.scope, code: RejectionCode.kindMismatch,
                detail: "\(shape.name) holds events, which are only appended.", hint: "Insert another event instead.",
                now: now)
        case .pullOnly:
            try Outbox.refuse(
                db, operation, record: id.text, scope: scope.scope, code: RejectionCode.directionForbidden,
                detail: "\(shape.name) travels from the server only.",
                hint: "Write to it on the server, or change the entity's direction there.", now: now)
        }
    }

    /// The row is the server's again at once. From the first one on foreign keys are off, until the batch is sealed.
    private func restore(
        _ batch: Batch, _ table: RecordTable, _ key: [Cell], _ id: RecordID, _ shadow: Shadow
    ) throws {
        try ConnectionSwitch.foreignKeys.turnOff(db)
        try table.undoEdit(db, key, shadow, in: scope.scope, now: now, schema, batch.sent) { shape in
            forbidden(shape, isNew: false) != nil
        }
    }
}
