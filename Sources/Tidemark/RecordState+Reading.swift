import GRDB
import TidemarkWire

extension RecordState {
    init(_ db: Database, _ shape: TableShape, _ id: RecordID) throws {
        self = .confirmed
        let record: [Cell] = [.text(shape.name), .text(id.text)]
        let key = shape.key(of: id)
        if let reason = try Query(
            db, "SELECT reason FROM tidemark_parked WHERE entity = ?1 AND record = ?2 AND leaving = 0"
        ).first(db, record, { $0.text(0) }), try key.flatMap({ try RecordTable(shape).row(db, $0) }) == nil {
            self = .parked(reason: reason)
        } else if let key, try RecordTable(shape).shadow(db, key)?.mark != nil {
            self = .pending
        } else if try Outbox.hasOpen(db, entity: shape.name, record: id.text) {
            self = .sent
        } else if try Conflicts.isOpen(db, entity: shape.name, record: id.text) {
            self = .undecided
        } else if let reason = try Query(
            db,
            """
            SELECT coalesce(detail, code, status) FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND status = 'rejected' ORDER BY id DESC LIMIT 1
            """
        ).first(db, record, { $0.text(0) }) {
            self = .rejected(reason: reason)
        }
    }
}

extension RejectedOperation {
    static func all(_ db: Database) throws -> [RejectedOperation] {
        guard try LibrarySchema.isInstalled(db) else { return [] }
        return try Query(
            db,
            """
            SELECT id, scope, entity, record, kind, coalesce('"fields":' || CAST(content AS TEXT), members), code,
              detail, hint, finished_at FROM tidemark_operation
            WHERE status = 'rejected' ORDER BY id
            """
        ).rows(db) { row -> RejectedOperation? in
            guard let scope = Scope(row.text(1)) else { return nil }
            return RejectedOperation(
                id: row.integer(0), scope: scope, entity: row.text(2), record: row.text(3),
                isDelete: row.text(4) == Operation.Kind.delete.rawValue, fields: fields(row.blob(5)), code: row.text(6),
                detail: row.text(7), hint: row.text(8), rejectedAt: row.integer(9))
        }.compactMap { $0 }
    }

    /// The fields out of the sealed members, which may lack what an operation on the wire must have.
    private static func fields(_ members: [UInt8]) -> [String: Value] {
        let object = Array("{".utf8) + members + Array("}".utf8)
        let data = try? object.reading { (reader: inout JSONReader) throws(JSONError) -> DataObject in
            var data = DataObject.empty
            try reader.enterObject()
            while let name = try reader.nextMember() {
                if reader.matches(name, "fields") || reader.matches(name, "data") {
                    data = try DataObject(from: &reader)
                } else {
                    try reader.skip()
                }
            }
            return data
        }
        var fields: [String: Value] = [:]
        for field in data?.fields ?? [] {
            let name = data?.nameString(field) ?? ""
            fields[name] = data?.value(name)
        }
        return fields
    }

    func discard(_ db: Database, _ layout: Layout) throws {
        let isLocal = try Query(
            db, "SELECT lane IS NULL FROM tidemark_operation WHERE id = ?1 AND finished_at IS NOT NULL"
        ).first(db, [.integer(id)]) { $0.integer(0) == 1 }
        guard let isLocal else { return }
        try Query(db, "DELETE FROM tidemark_operation WHERE id = ?1").execute([.integer(id)])
        guard isLocal, let shape = layout[entity], let recordID = RecordID(record), let key = shape.key(of: recordID)
        else { return }
        let table = RecordTable(shape)
        guard let shadow = try table.shadow(db, key), shadow.mark == nil else { return }
        if shadow.state == .known {
            try Flag.whileApplying(db) { try table.write(db, key, shadow.cells) }
        } else {
            // Captured: rows that go with this one by the schema's own ON DELETE are edits like any other.
            try table.deleteRow(db, key)
        }
        try table.dropShadow(db, key)
    }
}
