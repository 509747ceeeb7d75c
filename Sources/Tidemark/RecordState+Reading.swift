import Foundation
public import GRDB
import TidemarkWire

extension RecordState {
    /// `nil` where nothing is known here of the record: neither row nor edit, and no deletion that is remembered.
    ///
    /// - Parameters:
    ///   - name: the record as the file keeps it (``KeyText``).
    ///   - key: its key; `nil` where its id is not one of the table's.
    init?(_ db: Database, _ shape: TableSchema, _ name: String, key: [Cell]?) throws {
        let record: [Cell] = [.text(shape.name), .text(name)]
        let place = RecordName(entity: shape.name, record: name)
        let row = try key.flatMap { try RecordTable(shape).row(db, $0) }
        let shadow = try key.flatMap { try RecordTable(shape).shadow(db, $0) }
        let blocker = try BlockedEdits.blocker(db, of: place)
        if row == nil,
            let reason = try Query(
                db, "SELECT reason FROM tidemark_quarantine WHERE entity = ?1 AND record = ?2 AND move = 0"
            ).first(db, record, { $0.text(0) })
        {
            self = .quarantined(reason: reason)
        } else if shadow?.mark != nil || blocker?.reason == .unnamed {
            self = .pending
        } else if try Outbox.hasOpen(db, entity: shape.name, record: name) {
            self = .sent
        } else if let blocker = blocker?.name {
            self = .blocked(reason: "It refers to \(blocker.entity) \(blocker.record), whose insert was refused.")
        } else if try Conflicts.isOpen(db, entity: shape.name, record: name) {
            self = .undecided
        } else if let reason = try Outbox.lastRefusal(db, entity: shape.name, record: name) {
            self = .rejected(reason: reason)
        } else if try row != nil || shadow != nil || Self.isRemembered(db, record) {
            self = .confirmed
        } else {
            return nil
        }
    }

    /// Whether the file remembers a record that has no row: it was sent, deleted elsewhere, or lies in a scope that it
    /// leaves.
    private static func isRemembered(_ db: Database, _ record: [Cell]) throws -> Bool {
        for table in ["operation", "quarantine", "deleted_row"] {
            let sql = "SELECT 1 FROM tidemark_\(table) WHERE entity = ?1 AND record = ?2 LIMIT 1"
            if try Query(db, sql).first(db, record, { _ in true }) != nil { return true }
        }
        return try Query(
            db,
            """
            SELECT 1 FROM tidemark_scope JOIN tidemark_known_version ON scope = name
            WHERE entity = ?1 AND record = ?2 LIMIT 1
            """
        ).first(db, record) { _ in true } != nil
    }
}

extension SyncEngine {
    /// How a record stands between this device and the server.
    ///
    /// ```swift
    /// let state = try await sync.state(of: "todo", id: "0192…")
    /// if case .rejected(let reason) = state { show(reason) }
    /// ```
    ///
    /// - Parameters:
    ///   - table: one of the engine's tables, in whichever case.
    ///   - id: the id on the wire: a text key as it is, an integer key in decimal, any other as the canonical JSON
    ///     array of its values. A temporary id will do.
    /// - Throws: ``SyncError``: `table_unsupported` where the engine does not sync the table, `record_unknown` where
    ///   nothing is known here of such a record, neither its row nor an edit, nor that it was deleted.
    public func state(of table: String, id: String) async throws -> RecordState {
        try await state(of: table) { shape, db in
            guard let id = RecordID(try Self.canonicalID(of: id, in: shape.name, db)) else { return nil }
            return try RecordState(db, shape, id.text, key: shape.key(of: id))
        }
    }

    /// How the record with a key of one column stands, by the value that the app keeps in it: a number, a `UUID`, a
    /// `Data`.
    ///
    /// ```swift
    /// let state = try await sync.state(of: "todo", id: todo.id)
    /// ```
    /// A `UUID` is looked for as GRDB stores it, as 16 bytes, and as text in either case.
    ///
    /// - Throws: as ``state(of:id:)-(String,String)``.
    public func state(of table: String, id: some DatabaseValueConvertible) async throws -> RecordState {
        var cells = [Cell(id.databaseValue)]
        if let uuid = id as? UUID { cells += [.text(uuid.uuidString.lowercased()), .text(uuid.uuidString)] }
        let candidates = cells.map { [$0] }
        return try await state(of: table) { shape, db in
            for key in candidates {
                if let state = try Self.state(of: key, shape, db) { return state }
            }
            return nil
        }
    }

    /// How a record of the app's own stands, by its key.
    ///
    /// ```swift
    /// let state = try await sync.state(of: todo)
    /// ```
    /// - Throws: as ``state(of:id:)-(String,String)``; what the record throws when it is encoded passes through.
    public func state<Record: TableRecord & EncodableRecord>(of record: Record) async throws -> RecordState {
        let values = try record.databaseDictionary.map { ($0.key, Cell($0.value)) }
        return try await state(of: Record.databaseTableName) { shape, db in
            let key = shape.key.map { column in values.first { $0.0.isSameName(as: column.name) }?.1 ?? .null }
            return try Self.state(of: key, shape, db)
        }
    }

    private func state(
        of table: String, _ find: @escaping @Sendable (TableSchema, Database) throws -> RecordState?
    ) async throws -> RecordState {
        try await install()
        guard let shape = await schemaCache.layout?[table] else {
            throw SyncError(
                .tableUnsupported, "This engine does not sync a table '\(table)'.",
                hint: "Ask about one of the engine's tables.")
        }
        guard let state = try await file.asked(to: .read, { db in try find(shape, db) }) else {
            throw SyncError(
                .recordUnknown, "Nothing is known here of such a record of '\(shape.name)'.",
                hint: "Ask by the id on the wire, or by the value in the key's column.")
        }
        return state
    }

    private static func state(of key: [Cell], _ shape: TableSchema, _ db: Database) throws -> RecordState? {
        guard key.count == shape.key.count else { return nil }
        let stored = zip(key, shape.key).map { $0.stored(with: $1.affinity) }
        guard let id = shape.recordID(stored) else {
            return try RecordState(db, shape, KeyText(stored).text, key: stored)
        }
        let canonical = RecordID(try canonicalID(of: id.text, in: shape.name, db)) ?? id
        return try RecordState(db, shape, canonical.text, key: shape.key(of: canonical))
    }
}

extension Cell {
    init(_ value: DatabaseValue) {
        switch value.storage {
        case .null: self = .null
        case .int64(let integer): self = .integer(integer)
        case .double(let real): self = .real(real)
        case .string(let text): self = .text(text)
        case .blob(let data): self = .blob(Array(data))
        }
    }

    /// The value as a column holds it once it is written there (SQLite's manual, "Datatypes", 3.2), as far as keys need
    /// it: numbers in columns of text are text, and the other way round.
    func stored(with affinity: Affinity) -> Cell {
        switch (affinity, self) {
        case (.text, .integer(let value)): return .text(String(value))
        case (.integer, .text(let bytes)), (.numeric, .text(let bytes)):
            let text = String(decoding: bytes, as: UTF8.self)
            return Int64(text).flatMap { String($0) == text ? .integer($0) : nil } ?? self
        case (.integer, .real(let bits)), (.numeric, .real(let bits)):
            return Int64(exactly: Double(bitPattern: bits)).map(Cell.integer) ?? self
        case (.real, .integer(let value)): return .real(Double(value))
        default: return self
        }
    }
}
