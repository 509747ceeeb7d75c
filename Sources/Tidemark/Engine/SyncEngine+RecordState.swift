import Foundation
public import GRDB
import TidemarkWire

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
    ///   nothing is known here of such a record, neither its row nor an edit, nor that it was deleted; and as
    ///   ``install()`` does, unless the engine is disconnected from a file that it had installed.
    public func state(of table: String, id: String) async throws -> RecordState {
        try await state(of: table) { shape, db in
            guard let id = RecordID(try Self.canonicalID(db, of: id, in: shape.name)) else { return nil }
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

    /// Makes sure that the file can be read: after ``disconnect()`` as it was left, and as ``install()`` otherwise.
    func installToRead() async throws {
        if (try? await schemaCache.isLeftStanding()) == true { return }
        try await install()
    }

    private func state(
        of table: String, _ find: @escaping @Sendable (TableSchema, Database) throws -> RecordState?
    ) async throws -> RecordState {
        try await installToRead()
        guard let shape = await schemaCache.schema?[table] else {
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
        let canonical = RecordID(try canonicalID(db, of: id.text, in: shape.name)) ?? id
        return try RecordState(db, shape, canonical.text, key: shape.key(of: canonical))
    }
}
