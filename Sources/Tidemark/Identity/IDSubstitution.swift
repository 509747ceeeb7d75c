import GRDB
import TidemarkCore
import TidemarkWire

/// Puts ids in the place of temporary ones: keys, every column that refers to them, declared JSON paths, and whatever
/// this library remembers of the records. Nothing of it is an edit, and a second time changes nothing.
///
/// Runs inside the transaction that brought the ids, while capture is suppressed and foreign keys are off. A sealed
/// operation stays as it is for the wire; what it means here is kept beside it.
struct IDSubstitution {
    let db: Database
    let schema: SyncSchema
    let identity: Identity
    /// Whose page or verdict brought the ids.
    let scope: Scope
    let now: Int64

    private struct Step: Hashable {
        var old: RecordID
        var new: RecordID
    }

    func run(_ aliases: [Alias]) throws {
        var steps: [String: [Step]] = [:]
        for alias in aliases {
            // A temporary id stands for one record for ever.
            let id = try Alias.find(db, alias.entity, alias.temporary) ?? alias.id
            steps[alias.entity, default: []].append(Step(old: alias.temporary, new: id))
            try Alias(entity: alias.entity, temporary: alias.temporary, id: id).store(db, now: now)
        }
        try run(steps)
    }

    private func run(_ steps: [String: [Step]]) throws {
        for (entity, steps) in steps.sorted(by: { $0.key < $1.key }) {
            guard let shape = schema[entity] else { continue }
            try run(steps, shape)
        }
    }

    private func run(_ steps: [Step], _ shape: TableSchema) throws {
        for step in steps {
            guard let old = shape.key(of: step.old), let new = shape.key(of: step.new) else { continue }
            try RenamedIDs.note(db, old, new)
            try Renaming(db: db, scope: scope, table: RecordTable(shape)).move(step.old, old, to: step.new, new)
        }
        for column in identity.columns where column.entity == shape.name { try rewriteKeys(column) }
        for column in identity.columns where column.entity == shape.name { try rewrite(column) }
        for document in identity.documents where document.entity == shape.name { try rewrite(document) }
        try rewriteQuarantined(referringTo: shape.name)
        let operations = SealedNames(db: db)
        for step in steps {
            try operations.resolve(shape.name, step.old, step.new)
            try BlockedEdits.release(db, schema, behind: RecordName(entity: shape.name, record: step.old.text))
        }
        try RenamedIDs.clear(db)
    }

    // MARK: Columns

    private func isKey(_ column: Identity.Column, of shape: TableSchema) -> Bool {
        shape.key.contains { $0.name.isSameName(as: column.column) }
    }

    private func rewrite(_ column: Identity.Column) throws {
        let name = quoted(column.column)
        let set = "SET \(name) = \(RenamedIDs.newSQL(name))"
        let isOld = RenamedIDs.isOldSQL(name)
        guard let shape = schema[column.table] else {
            return try attempt("UPDATE OR IGNORE \(quoted(column.table)) \(set) WHERE \(isOld)")
        }
        guard !isKey(column, of: shape) else { return }
        try ShadowTable(shape).update(db, set, where: isOld)
        try attempt("UPDATE OR IGNORE \(shape.sql) \(set) WHERE \(isOld) AND \(isUnderWay(shape, shape.sql))")
        try Installation.refreshPlaces(db, shape)
    }

    /// A synced row holds a temporary id only while an edit of it is under way, or where the row itself was never sent;
    /// so the others are not looked at, and no index is needed.
    private func isUnderWay(_ shape: TableSchema, _ table: String) -> String {
        let isFirst = "NOT \(FirstCapture.isDoneSQL(shape, table))"
        return "(\(ShadowTable(shape).isKeyOfOneSQL) OR \(isFirst))"
    }

    /// Where the app's schema refuses it, the reference stays dangling, and is rewritten with the row's next edit.
    private func attempt(_ sql: String) throws {
        do { try Query(db, sql).execute() } catch let error as DatabaseError where error.refusesRow {}
    }

    /// The key of a record holds another record's id: it moves with it.
    private func rewriteKeys(_ column: Identity.Column) throws {
        guard let shape = schema[column.table], isKey(column, of: shape) else { return }
        let isOld = RenamedIDs.isOldSQL(quoted(column.column))
        let found = try ShadowTable(shape).keys(db, where: isOld)
        let table = RecordTable(shape)
        for old in found {
            guard let id = shape.recordID(old),
                let renamed = try resolved(Operation(.delete, entity: shape.name, id: id), column.entity),
                let new = renamed.id, new != id, let key = shape.key(of: new)
            else { continue }
            let scope = try Scope(table.scopeName(db, old)) ?? scope
            try Renaming(db: db, scope: scope, table: table).move(id, old, to: new, key)
        }
    }

    // MARK: Fields that the library reads itself

    private func resolved(
        _ operation: Operation, _ entity: String
    ) throws -> Operation? {
        guard let shape = schema[operation.entity] else { return nil }
        var probe = operation
        probe.references = identity.references(in: shape).filter { $0.entity == entity }
        return try Resolution(probe, canonical: successor).operation
    }

    /// Returns the new id of a record that is being renamed.
    private func successor(_ entity: String, _ old: RecordID) throws -> RecordID? {
        guard let shape = schema[entity], let key = shape.key(of: old) else { return nil }
        return try RenamedIDs.successor(db, of: key)
            .flatMap { shape.recordID([$0]) }
    }

    private func rewrite(_ document: DocumentReference) throws {
        guard let shape = schema[document.table], let index = shape.dataIndex(document.column),
            let path = JSONPath(document.path)
        else { return }
        for table in ShadowTable(shape).placesSQL {
            try rewrite(document, path, shape, shape.data[index].sql, in: table)
        }
    }

    private func rewrite(
        _ document: DocumentReference, _ path: JSONPath, _ shape: TableSchema, _ column: String, in table: String
    ) throws {
        let keys = shape.key.map(\.sql).joined(separator: ", ")
        let rows = try Query(
            db,
            "SELECT \(keys), \(column) FROM \(table) WHERE typeof(\(column)) = 'text' AND \(isUnderWay(shape, table))"
        ).rows(db) { ($0.cells(0..<shape.key.count), $0.cell(shape.key.count)) }
        let isKey = shape.key.enumerated().map { "\($1.sql) = ?\($0 + 2)" }.joined(separator: " AND ")
        for (key, cell) in rows {
            guard case .text(let bytes) = cell,
                let new = try path.replacing(
                    in: bytes,
                    { value in
                        guard TemporaryShape.matches(value.text), let old = RecordID(value.text) else { return nil }
                        return try successor(document.entity, old).map(value.replaced(by:))
                    })
            else { continue }
            try Query(db, "UPDATE OR IGNORE \(table) SET \(column) = ?1 WHERE \(isKey)").execute([.text(new)] + key)
        }
    }

    /// Rows that wait for their place may refer to a record too.
    private func rewriteQuarantined(referringTo entity: String) throws {
        let tables = Set(
            identity.columns.filter { $0.entity == entity }.map(\.table)
                + identity.documents.filter { $0.entity == entity }.map(\.table))
        for shape in schema.shapes where tables.contains(shape.name) {
            for (record, data, scope) in try QuarantinedRow.data(db, of: shape.name) {
                var operation = Operation(.upsert, entity: shape.name, id: RecordID(record))
                operation.fields = try DataObject(stored: data)
                guard let new = try resolved(operation, entity), new.fields != operation.fields else { continue }
                try QuarantinedRow.rewrite(db, shape.name, record, scope, data: new.fields.bytes)
            }
        }
    }
}
