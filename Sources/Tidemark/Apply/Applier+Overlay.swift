import GRDB
import TidemarkWire

// MARK: - Edits over rows

extension Applier {
    /// Lays the edits made here over the server's row, after either changed. The shadow stays exactly while something
    /// is pending.
    func overlay(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ serverRow: Shadow, _ operation: Operation?,
        _ edits: LocalDelta, current: [Cell]?, isQuarantined: Bool
    ) throws {
        manifest.look(table.shape.name, id)
        var serverRow = serverRow
        // The delete is over, and the row that it was made on is nobody's to put back.
        if serverRow.state == .known, serverRow.isRowUnknown, edits.isEmpty, operation == nil {
            serverRow.state = .absent
            try RefetchQueue.note(db, scope, table.shape.name, id.text)
            outcome.refetch += 1
        }
        let new = serverRow.rebased(with: operation, edits, shape: table.shape, current: current)
        let isPending =
            switch edits {
            case .none: operation != nil || serverRow.seed != nil
            case .deleted: operation != nil || serverRow.state == .known
            case .fields: true
            }
        try put(
            table, id, key, from: current, isQuarantined: isQuarantined, to: new, version: serverRow.version,
            isPending: isPending)
        if isPending {
            serverRow.isGone = serverRow.isGone && new == nil
            try table.records.writeShadow(db, key, placed(serverRow, table.shape, key, new, isSent: operation != nil))
        } else {
            if try hasNotes.get() {
                try table.records.forget(db, key, id)
                try Inferred.supersede(db, RecordName(entity: table.shape.name, record: id.text), scope)
            } else {
                try table.records.dropShadow(db, key)
            }
            try Outbox.forgetLocalRefusals(db, entity: table.shape.name, record: id.text)
        }
    }
}

extension Shadow {
    /// The server deleted the row under an edit: what the edit was made on stays, with its version. A later edit of it
    /// is still one of the deleted row, never an insert that would revive it, and older than all that is known.
    mutating func delete(base: Version, at version: Version) {
        guard state == .known else { return }
        (state, self.version) = (.deleted, max(0, min(base, version - 1)))
    }

    /// Edits keep the base they were made on, whatever row comes under them.
    mutating func noteBases(
        _ edits: LocalDelta, shape: TableSchema, base: Version, except operation: Operation?
    ) {
        switch edits {
        case .none: return
        case .deleted: bases[Self.deletionBase] = bases[Self.deletionBase] ?? base
        case .fields(let fields):
            let sent = operation.map { Set($0.fields.cells(in: shape).keys) } ?? []
            for index in fields.keys where !sent.contains(index) {
                let name = shape.data[index].name
                bases[name] = bases[name] ?? base
            }
        }
    }
}

extension Shadow {
    /// Another row comes under an edit: what the edited fields were is kept for the list of conflicts.
    mutating func noteOriginals(
        _ edits: LocalDelta, _ operation: Operation?, under incoming: [Int: Cell], shape: TableSchema
    ) {
        guard state == .known else { return }
        var edited = operation.map { Set($0.fields.cells(in: shape).keys) } ?? []
        if case .fields(let fields) = edits { edited.formUnion(fields.keys) }
        for index in edited {
            guard let cell = incoming[index], cell != cells[index] else { continue }
            let name = shape.data[index].name
            originals[name] = originals[name] ?? cells[index]
        }
    }

    /// The app has to decide about an operation: what was edited on top of it was made on the same rows, and is not
    /// an edit of the row that came with the verdict.
    mutating func noteBases(
        _ remaining: LocalDelta, on operation: Operation, shape: TableSchema, base: Version
    ) {
        guard case .fields(let fields) = remaining else { return }
        let sent = Set(operation.fields.cells(in: shape).keys)
        for index in fields.keys {
            let column = shape.data[index]
            let own = operation.base(ofField: column.canonicalName) ?? 0
            bases[column.name] = bases[column.name] ?? (sent.contains(index) ? own : base)
        }
    }
}

extension Shadow {
    /// A record that was edited here was deleted elsewhere meanwhile: an answer says so, or, of one that was made here,
    /// a state that is whole as of later, and lacks it. What was edited since is an edit of it, and never an insert
    /// that would revive it.
    ///
    /// - Parameter base: the version that the operation's edit was made on.
    mutating func noteDeleted(
        _ verdict: Verdict, _ operation: Operation, _ shape: TableSchema, base: Version, complete: Version?
    ) {
        guard operation.setsFields, let cells = overlaid(with: operation, shape: shape) else { return }
        if let record = verdict.record {
            guard record.data == nil else { return }
            (state, self.cells, version) = (.deleted, cells, base)
        } else if state == .absent, verdict.isAlone, let version = verdict.version, version <= complete ?? -1,
            !shape.isScopedByColumn
        {
            (state, self.cells, self.version) = (.deleted, cells, version)
        }
    }
}

extension Shadow {
    /// Makes the operation's values the base of the edits that were made since.
    mutating func noteTaken(_ operation: Operation, under remaining: LocalDelta, shape: TableSchema) {
        for (index, cell) in operation.fields.cells(in: shape) {
            bases[shape.data[index].name] = nil
            originals[shape.data[index].name] = remaining.fields[index].map { _ in cell }
        }
    }
}
