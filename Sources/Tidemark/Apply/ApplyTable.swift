import GRDB
import TidemarkWire

/// A table while a page is applied: its statements, and whether the short way is open.
final class ApplyTable {
    let shape: TableSchema
    let records: RecordTable
    let name: [UInt8]
    /// Columns that only the server may write.
    let reserved: Set<Int>
    /// No record of the table has edits, is quarantined or is ahead: rows go straight from the page into the table.
    private(set) var isPlain = false
    var mayContend = false
    /// Rows that triggers of the app's have refused one behind the other.
    private var refused = 0

    private struct Columns: Hashable {
        var present: [Int]
        var isWhole: Bool
    }

    private let scope: Scope
    private let hasher: RowHash
    /// The value of the scope column in this scope's rows, as text and as an integer.
    private let placeText: [UInt8]
    private let placeNumber: Int64?

    private var writes: [Columns: Query] = [:]
    private var last: (columns: Columns, query: Query)?
    private var deletion: Query?
    private var present: [Int] = []
    private var scalars: [JSONScalar] = []

    init(_ shape: TableSchema, in scope: Scope, declared: EntityDeclaration) {
        self.shape = shape
        self.scope = scope
        let place = shape.placeText(of: scope)
        placeText = Array(place.utf8)
        placeNumber = Int64(place).flatMap { String($0) == place ? $0 : nil }
        hasher = RowHash(shape)
        records = RecordTable(shape, keeping: RowStatements())
        name = Array(shape.name.utf8)
        self.reserved = Set(declared.serverFields.compactMap(shape.dataIndex))
    }

    func begin(_ db: Database, mayBePlain: Bool) throws {
        isPlain =
            try mayBePlain && !shape.isGuarded
            && !records.hasShadows(db)
            && QuarantinedRow.isEmpty(db, shape.name)
    }

    func end() {
        for query in writes.values { query.clear() }
        deletion?.clear()
        writes = [:]
        last = nil
        deletion = nil
        isPlain = false
    }

    /// Applies a change without looking at the record first; `false` where it takes the long way.
    func applyPlain(
        _ change: IncomingChange, _ reader: JSONReader, _ db: Database, noting manifest: inout ManifestChanges
    ) throws -> Bool {
        // A parent's tombstone is noted, a row to be kept is read, and one of a key of several columns is deleted, on
        // the long way.
        guard
            change.kind == .upsert
                || (shape.key.count == 1 && shape.children.isEmpty && shape.keepsDeleted == nil)
        else { return false }
        guard let query = try plainQuery(change, reader, db), bindKey(change.id, reader, query) else { return false }
        if change.kind == .upsert { bindFields(reader, change.data ?? 0..<0, query) }
        do { try query.execute() } catch let error as DatabaseError where error.refusesRow {
            query.reset()
            return false
        }
        // A trigger of the app's may have skipped the row, and one that another scope has here is left alone. Where a
        // part belongs to no row here, the long way says so.
        guard db.changesCount > 0 else { return false }
        noteHash(change, reader, in: &manifest)
        return true
    }

    /// The statement for a change, ready to be bound; `nil` where the change goes the long way.
    private func plainQuery(_ change: IncomingChange, _ reader: JSONReader, _ db: Database) throws -> Query? {
        let query: Query
        if change.kind == .delete {
            query = try deletion ?? deletionQuery(db)
            deletion = query
        } else {
            try readFields(change, reader)
            guard !shape.isScopedByColumn || leavesScope(change) || saysScope(reader) else { return nil }
            // A part makes no row, and a part of nothing is looked at on the long way.
            guard !change.isPartial || !present.isEmpty else { return nil }
            query = try writeQuery(db, isWhole: !change.isPartial)
        }
        query.reset()
        return query
    }

    /// A row whose values SQLite keeps as they came is hashed where it stands; any other is read again.
    private func noteHash(_ change: IncomingChange, _ reader: JSONReader, in manifest: inout ManifestChanges) {
        let key =
            change.id.hasEscapes
            ? reader.unescaped(change.id).withUnsafeBytes { PackedID.encode($0) }
            : PackedID.encode(UnsafeRawBufferPointer(rebasing: reader.bytes[change.id.range]))
        guard change.kind == .upsert, !change.isPartial, present.count == shape.data.count,
            zip(present, scalars).allSatisfy({ shape.data[$0].affinity.keeps($1) })
        else { return manifest.look(shape.name, key) }
        let weight = hasher.weight(key)
        var sum = weight
        for (index, scalar) in zip(present, scalars) { sum &+= weight &* hasher.content(index, scalar, reader) }
        manifest.note(shape.name, key, hash: sum)
    }

    /// A row as it stands in the table, and as the server has it.
    func noteHash(_ id: RecordID, _ row: [Cell], in manifest: inout ManifestChanges) {
        let key = PackedID.encode(id)
        manifest.note(shape.name, key, hash: hasher.hash(key, row))
    }

    private func deletionQuery(_ db: Database) throws -> Query {
        let isHere = shape.isScopedByColumn ? " AND \(shape.isInSQL(scope, shape.sql))" : ""
        return try Query(db, "DELETE FROM \(shape.sql) WHERE \(shape.key[0].sql) = ?1" + isHere)
    }

    /// Whether a part says nothing of the scope: the row's own column does then.
    private func leavesScope(_ change: IncomingChange) -> Bool {
        change.isPartial && !present.contains { $0 == shape.scopeIndex }
    }

    /// Whether the row that was read is in the page's scope, as far as its data tell.
    private func saysScope(_ reader: JSONReader) -> Bool {
        guard let place = present.firstIndex(where: { $0 == shape.scopeIndex }) else { return false }
        switch scalars[place] {
        case .text(let text) where !text.hasEscapes: return reader.bytes[text.range].elementsEqual(placeText)
        case .integer(let value): return value == placeNumber
        case .null, .text, .real, .blob: return false
        }
    }

    /// How many refusals tell that rows of another table have to come first.
    private static let refusalsOfOrder = 20

    /// Whether the rows that come now would most likely be refused as those before them were.
    var isRefusing: Bool { refused >= Self.refusalsOfOrder }

    /// Takes in what became of a row that was tried; `nil`: it stands in the table.
    func noteOutcome(_ error: DatabaseError?) {
        refused = error?.extendedResultCode == .SQLITE_CONSTRAINT_TRIGGER ? refused + 1 : 0
    }

    /// Whether the server's row that was read last has no such field.
    func isLacking(_ index: Int) -> Bool { index != shape.scopeIndex && !present.contains(index) }

    /// The row's fields by column, for the long way.
    func cells(_ change: IncomingChange, _ reader: JSONReader) throws -> [Int: Cell] {
        try readFields(change, reader)
        var cells: [Int: Cell] = [:]
        for (index, scalar) in zip(present, scalars) {
            switch scalar {
            case .null: cells[index] = .null
            case .integer(let value): cells[index] = .integer(value)
            case .real(let value): cells[index] = .real(value)
            case .text(let text):
                cells[index] = .text(text.hasEscapes ? reader.unescaped(text) : Array(reader.bytes[text.range]))
            case .blob(let bytes): cells[index] = .blob(bytes)
            }
        }
        return change.isPartial ? cells : shape.whole(cells, in: scope)
    }

    // MARK: Reading and binding in place

    private func readFields(_ change: IncomingChange, _ reader: JSONReader) throws {
        present.removeAll(keepingCapacity: true)
        scalars.removeAll(keepingCapacity: true)
        guard let range = change.data else { throw JSONError(.missingMember, at: change.id.range.lowerBound) }
        // Reads on in the same buffer, so that places in it stay comparable.
        var fields = JSONReader(reader.bytes, at: range.lowerBound)
        try fields.enterObject()
        var guess = 0
        while let name = try fields.nextMember() {
            let index = column(name, fields, guess)
            guard let index else {
                try fields.skip()
                continue
            }
            present.append(index)
            scalars.append(try fields.readScalar())
            guess = index + 1
        }
    }

    /// Rows of one table name their fields in the same order, so the next column is the first guess.
    private func column(_ name: JSONReader.Text, _ reader: JSONReader, _ guess: Int) -> Int? {
        let bytes = reader.bytes[name.range]
        if guess < shape.data.count, shape.data[guess].canonicalName.elementsEqual(bytes) { return guess }
        return name.hasEscapes ? shape.dataIndex(reader.string(name)) : shape.dataIndex(canonical: bytes)
    }

    private func writeQuery(_ db: Database, isWhole: Bool) throws -> Query {
        // Rows of one table mostly hold the same columns.
        if let last, last.columns.present == present, last.columns.isWhole == isWhole { return last.query }
        let columns = Columns(present: present, isWhole: isWhole)
        let isHere = shape.isScopedByColumn ? shape.isInSQL(scope, shape.sql) : nil
        let query =
            try writes[columns]
            ?? Query(
                db,
                isWhole
                    ? RecordStatements.upsert(shape, present, isWhole: true, only: isHere)
                    : RecordStatements.update(shape, present, only: isHere))
        writes[columns] = query
        last = (columns, query)
        return query
    }

    private func bindKey(_ id: JSONReader.Text, _ reader: JSONReader, _ query: Query) -> Bool {
        guard shape.key.count == 1 else {
            guard let key = RecordID(reader.string(id)).flatMap(shape.key(of:)) else { return false }
            for (index, cell) in key.enumerated() { query.bind(cell, at: index + 1) }
            return true
        }
        switch shape.key[0].affinity {
        case .text:
            guard id.hasEscapes else {
                query.bind(text: UnsafeRawBufferPointer(rebasing: reader.bytes[id.range]), at: 1, copied: false)
                return true
            }
            query.bind(.text(reader.unescaped(id)), at: 1)
            return true
        case .integer:
            let text = reader.string(id)
            guard let value = Int64(text), String(value) == text else { return false }
            query.bind(integer: value, at: 1)
            return true
        case .blob, .real, .numeric: return false
        }
    }

    private func bindFields(_ reader: JSONReader, _ range: Range<Int>, _ query: Query) {
        for (offset, scalar) in scalars.enumerated() {
            let index = offset + shape.key.count + 1
            switch scalar {
            case .null: query.bindNull(at: index)
            case .integer(let value): query.bind(integer: value, at: index)
            case .real(let value): query.bind(real: value, at: index)
            case .text(let text) where !text.hasEscapes:
                query.bind(text: UnsafeRawBufferPointer(rebasing: reader.bytes[text.range]), at: index, copied: false)
            case .text(let text): query.bind(.text(reader.unescaped(text)), at: index)
            case .blob(let bytes): query.bind(.blob(bytes), at: index)
            }
        }
    }
}
