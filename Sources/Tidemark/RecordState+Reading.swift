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
        } else if try Waiting.holds(db, RecordName(entity: shape.name, record: id.text)) {
            self = .pending
        } else if try Outbox.hasOpen(db, entity: shape.name, record: id.text) {
            self = .sent
        } else if let culprit = try Quarantine.culprit(db, of: RecordName(entity: shape.name, record: id.text)) {
            self = .held(reason: "It refers to \(culprit.entity) \(culprit.record), whose insert was refused.")
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
