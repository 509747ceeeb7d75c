import Foundation
import GRDB
import TidemarkWire

/// The list of conflicts in the file.
enum Conflicts {
    /// How far behind the newest conflict a resolved one may lie before it is dropped: the list is for people. Open
    /// ones stay.
    static let limit = 10_000

    private static let columns = """
        id, scope, entity, record, rule, fields, is_delete, is_deleted_elsewhere, is_open, version, edited_at,
        theirs_at, noticed_at, whole, operation
        """

    static func add(_ db: Database, _ conflict: Conflict) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_conflict(\(columns))
            VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
            """
        ).execute([
            .text(conflict.scope.name), .text(conflict.entity), .text(conflict.record), .text(conflict.rule.rawValue),
            .blob(encode(conflict.fields)), .integer(conflict.isDelete ? 1 : 0),
            .integer(conflict.isDeletedElsewhere ? 1 : 0), .integer(conflict.isOpen ? 1 : 0),
            .optional(conflict.version), .optional(conflict.editedAt?.milliseconds),
            .optional(conflict.theirsAt?.milliseconds),
            .integer(conflict.noticedAt.milliseconds), conflict.whole.map { .blob(object($0)) } ?? .null,
            .optional(conflict.operation),
        ])
        try Query(
            db, "DELETE FROM tidemark_conflict WHERE id <= (SELECT max(id) FROM tidemark_conflict) - ?1 AND NOT is_open"
        ).execute([.integer(Int64(limit))])
    }

    static func all(_ db: Database) throws -> [Conflict] {
        try Query(db, "SELECT \(columns) FROM tidemark_conflict ORDER BY id").rows(db, [], conflict)
            .compactMap { $0 }
    }

    static func one(_ db: Database, _ id: Int64) throws -> Conflict? {
        try Query(db, "SELECT \(columns) FROM tidemark_conflict WHERE id = ?1").first(db, [.integer(id)], conflict)
            ?? nil
    }

    /// The one that a kept operation belongs to.
    static func of(_ db: Database, operation: Int64) throws -> Conflict? {
        try Query(db, "SELECT \(columns) FROM tidemark_conflict WHERE operation = ?1")
            .first(db, [.integer(operation)], conflict) ?? nil
    }

    /// Returns the conflicts that wait for a decision, oldest first.
    static func open(_ db: Database, _ scope: Scope, after id: Int64) throws -> [Conflict] {
        try Query(
            db, "SELECT \(columns) FROM tidemark_conflict WHERE is_open AND scope = ?1 AND id > ?2 ORDER BY id"
        ).rows(db, [.text(scope.name), .integer(id)], conflict).compactMap { $0 }
    }

    /// Closes a decided conflict: the list says how, and the operation that was kept with it goes.
    static func close(_ db: Database, _ conflict: Conflict) throws {
        try Query(db, "UPDATE tidemark_conflict SET is_open = 0, fields = ?2, operation = NULL WHERE id = ?1")
            .execute([.integer(conflict.id), .blob(encode(conflict.fields))])
        guard let operation = conflict.operation else { return }
        try Outbox.removeUndecided(db, id: operation)
    }

    /// The open ones stay, because they are the app's to decide.
    static func removeResolved(_ db: Database, _ scope: Scope) throws {
        try Query(db, "DELETE FROM tidemark_conflict WHERE scope = ?1 AND NOT is_open").execute([.text(scope.name)])
    }

    static func dismiss(_ db: Database, _ id: Int64) throws {
        try Query(db, "DELETE FROM tidemark_conflict WHERE id = ?1 AND NOT is_open").execute([.integer(id)])
    }

    private static func conflict(_ row: Query) -> Conflict? {
        guard let scope = Scope(row.text(1)), let rule = ConflictRule(rawValue: row.text(4)) else { return nil }
        var conflict = Conflict(
            id: row.integer(0), scope: scope, entity: row.text(2), record: row.text(3), rule: rule,
            fields: fields(row.blob(5)), isDelete: row.integer(6) != 0, isDeletedElsewhere: row.integer(7) != 0,
            isOpen: row.integer(8) != 0, version: row.optionalInteger(9),
            editedAt: row.optionalInteger(10).map(Date.init(milliseconds:)),
            theirsAt: row.optionalInteger(11).map(Date.init(milliseconds:)),
            noticedAt: Date(milliseconds: row.integer(12)))
        conflict.whole = values(row.blob(13))
        conflict.operation = row.optionalInteger(14)
        return conflict
    }

    /// Counts the conflicts that wait for a decision.
    static func countOpen(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM tidemark_conflict WHERE is_open")
    }

    /// Whether any conflict of a scope waits for a decision.
    static func isAnyOpen(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_conflict WHERE is_open AND scope = ?1 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    /// Whether a conflict of a record waits for a decision, in the scope of that name.
    static func isOpen(_ db: Database, _ entity: String, _ record: String, _ scope: String) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_conflict
            WHERE entity = ?1 AND record = ?2 AND scope = ?3 AND is_open LIMIT 1
            """
        ).first(db, [.text(entity), .text(record), .text(scope)]) { _ in true } ?? false
    }

    /// Returns the records of a table whose conflicts wait for a decision, each once.
    static func openRecords(_ db: Database, _ entity: String) throws -> [String] {
        try Query(db, "SELECT DISTINCT record FROM tidemark_conflict WHERE is_open AND entity = ?1")
            .rows(db, [.text(entity)]) { $0.text(0) }
    }

    /// Returns the same records with the scope of each conflict.
    static func places(_ db: Database, _ entity: String) throws -> [(record: String, scope: String)] {
        try Query(db, "SELECT record, scope FROM tidemark_conflict WHERE entity = ?1 AND is_open")
            .rows(db, [.text(entity)]) { ($0.text(0), $0.text(1)) }
    }
}

// MARK: - Values as JSON

extension Conflicts {
    private static func encode(_ fields: [Conflict.Field]) -> [UInt8] {
        var writer = JSONWriter(capacity: 128)
        writer.raw("[")
        for (index, field) in fields.enumerated() {
            writer.raw(index == 0 ? "{\"field\":" : ",{\"field\":")
            writer.string(field.name)
            for (name, value) in [
                ("base", field.base), ("mine", field.mine), ("theirs", field.theirs), ("result", field.result),
            ] {
                guard let value else { continue }
                writer.raw(",")
                writer.string(name)
                writer.raw(":")
                writer.value(value)
            }
            writer.raw("}")
        }
        writer.raw("]")
        return writer.bytes
    }

    private static func fields(_ bytes: [UInt8]) -> [Conflict.Field] {
        let fields = try? bytes.reading { (reader: inout JSONReader) throws(JSONError) -> [Conflict.Field] in
            var fields: [Conflict.Field] = []
            try reader.enterArray()
            while try reader.nextElement() {
                var field = Conflict.Field(name: "", mine: nil, theirs: nil, result: nil)
                try reader.enterObject()
                while let name = try reader.nextMember() {
                    switch reader.string(name) {
                    case "field": field.name = try reader.readString()
                    case "base": field.base = try reader.readValue()
                    case "mine": field.mine = try reader.readValue()
                    case "theirs": field.theirs = try reader.readValue()
                    case "result": field.result = try reader.readValue()
                    default: try reader.skip()
                    }
                }
                fields.append(field)
            }
            return fields
        }
        return fields ?? []
    }

    static func object(_ values: [String: Value]) -> [UInt8] {
        var builder = DataObject.Builder()
        for (name, value) in values.sorted(by: { $0.key < $1.key }) { builder.append(name, value) }
        return builder.finish().bytes
    }

    static func values(_ bytes: [UInt8]) -> [String: Value]? {
        bytes.isEmpty ? nil : (try? DataObject(stored: bytes))?.values
    }
}
