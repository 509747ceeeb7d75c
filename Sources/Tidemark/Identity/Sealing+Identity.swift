import GRDB
import TidemarkCore
import TidemarkWire

/// Records that an operation names by their temporary ids.
struct Names {
    var held: [HeldName] = []
    /// Whether a field was left out because it names a record that names this one: it is sent when both have their ids.
    var isPartial = false
}

/// One such name, and where it stands.
struct HeldName: Hashable {
    var entity: String
    var temporary: RecordID
    var place: Reference.Place
}

// MARK: - Sealing under temporary ids

extension Sealing {
    /// Names the operation and what it refers to for the wire. What it refers to is sealed first, so that the server
    /// knows it by then.
    /// - Returns: the record that it has to wait for, if there is one, until that has an id.
    func settleNames(
        _ operation: inout Operation, _ table: RecordTable, _ key: [Cell], _ id: RecordID, _ batch: inout Batch,
        _ names: inout Names
    ) throws -> RecordName? {
        guard let identity = batch.identity else { return nil }
        let record = RecordName(entity: table.shape.name, record: id.text)
        if identity.isTemporary(record.entity, id.text) { (operation.tempID, operation.id) = (id, nil) }
        let references = identity.references(in: table.shape)
        guard !references.isEmpty else { return nil }
        batch.underWay.append(record)
        defer { batch.underWay.removeLast() }
        var leftOut: Set<String> = []
        for reference in references {
            let held = try Self.held(operation, reference)
            for name in held {
                switch try standing(of: name, &batch) {
                case .sealed: continue
                case .underWay(let field): leftOut.insert(field)
                case .unknown: return RecordName(entity: name.entity, record: name.temporary.text)
                }
            }
            guard !held.isEmpty else { continue }
            operation.references.append(reference)
            names.held += held
        }
        if !leftOut.isEmpty { leaveOut(leftOut, &operation, &names) }
        return nil
    }

    private static func held(_ operation: Operation, _ reference: Reference) throws -> [HeldName] {
        var probe = operation
        probe.references = [reference]
        var found: [HeldName] = []
        _ = try Resolution(probe) { entity, temporary in
            found.append(HeldName(entity: entity, temporary: temporary, place: reference.place))
            return nil
        }
        return found
    }

    private enum Standing {
        /// The server knows it when it comes to this operation, or will say what to wait for.
        case sealed
        /// It waits for this very operation; the field must come later.
        case underWay(field: String)
        /// It is refused, gone, set aside, or another scope's and without an id yet.
        case unknown
    }

    private func standing(of name: HeldName, _ batch: inout Batch) throws -> Standing {
        if try Alias.find(db, name.entity, name.temporary) != nil {
            // Used again after it had gone: the next answer puts the id in its place.
            try Alias.noteUse(db, name.entity, name.temporary)
            return .unknown
        }
        let record = RecordName(entity: name.entity, record: name.temporary.text)
        if batch.underWay.contains(record) {
            switch name.place {
            case .field(let field), .document(let field, _): return .underWay(field: field)
            case .key: return .unknown
            }
        }
        if try isSealed(record) { return .sealed }
        guard let shape = layout[name.entity], let key = shape.key(of: name.temporary) else { return .unknown }
        let table = RecordTable(shape)
        guard let shadow = try table.shadow(db, key),
            let row = try table.row(db, key) ?? Parked.cells(db, shape, name.temporary, scope.scope.name),
            shape.scope(ofKey: key, row) == scope.scope,
            try shadow.mark != nil || Waiting.holds(db, record),
            try join(table, key, &batch)
        else { return .unknown }
        let outcome = try seal(&batch, table, key, name.temporary)
        // Another scope's turn comes first: that scope looks at it again.
        if case .passed = outcome { return .unknown }
        batch.early.insert(record)
        if case .sealed = outcome { return .sealed }
        return .unknown
    }

    /// A record that one of a group names goes with the group, and takes a group of its own with it. One that is in a
    /// group is not sealed without it.
    private func join(_ table: RecordTable, _ key: [Cell], _ batch: inout Batch) throws -> Bool {
        guard let other = try table.group(db, key), other != batch.group else { return true }
        guard let group = batch.group else { return false }
        for shape in layout.shapes { try RecordTable(shape).rename(db, group: other, to: group) }
        return true
    }

    /// Whether the record's insert is on its way in this scope, before whatever is sealed now.
    private func isSealed(_ record: RecordName) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND scope = ?3 AND finished_at IS NULL LIMIT 1
            """
        ).first(db, [.text(record.entity), .text(record.record), .text(scope.scope.name)]) { _ in true } ?? false
    }

    /// Two new records that name each other: the first goes without the name, which follows as an edit.
    private func leaveOut(_ fields: Set<String>, _ operation: inout Operation, _ names: inout Names) {
        func isLeftOut(_ place: Reference.Place) -> Bool {
            switch place {
            case .field(let field), .document(let field, _): fields.contains(field)
            case .key: false
            }
        }
        let canonical = Set(fields.map { DataObject.canonical($0)[...] })
        operation.fields = operation.fields.filter { [operation] in !canonical.contains(operation.fields.name($0)) }
        operation.references.removeAll { isLeftOut($0.place) }
        names.held.removeAll { isLeftOut($0.place) }
        names.isPartial = true
    }
}

extension Outbox {
    /// Remembers whom the operation sealed last names, so that its meaning can be told when they have their ids.
    static func note(_ db: Database, _ names: [HeldName]) throws {
        for name in Set(names) {
            try Query(
                db,
                """
                INSERT OR IGNORE INTO tidemark_ref(entity, temporary, operation)
                VALUES (?1, ?2, (SELECT max(id) FROM tidemark_operation))
                """
            ).execute([.text(name.entity), .text(name.temporary.text)])
        }
    }
}
