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
        let place = RecordName(entity: shape.name, record: name)
        let row = try key.flatMap { try RecordTable(shape).row(db, $0) }
        let shadow = try key.flatMap { try RecordTable(shape).shadow(db, $0) }
        if row == nil, let reason = try QuarantinedRow.reason(db, of: place) {
            self = .quarantined(reason: reason)
        } else if try shadow?.mark != nil || Self.isFirst(db, shape, key, row, shadow) {
            self = .pending
        } else if let found = try RecordStateRule.first(db, for: place) {
            self.init(found.state, reason: found.reason)
        } else if try row != nil || shadow != nil || Self.isRemembered(db, place) {
            self = .confirmed
        } else {
            return nil
        }
    }

    /// Whether the row is older than its table's capture and was not sent yet.
    private static func isFirst(
        _ db: Database, _ shape: TableSchema, _ key: [Cell]?, _ row: [Cell]?, _ shadow: Shadow?
    ) throws -> Bool {
        guard let key, row != nil, shadow == nil else { return false }
        return try FirstCapture.contains(db, shape, key)
    }

    init(_ name: RecordStateRule.Name, reason: String?) {
        self =
            switch name {
            case .pending: .pending
            case .sent: .sent
            case .blocked: .blocked(reason: reason ?? "")
            case .undecided: .undecided
            case .inferred: .inferred
            case .rejected: .rejected(reason: reason ?? "")
            }
    }

    /// Whether the file remembers a record that has no row: it was sent, deleted elsewhere, or lies in a scope that it
    /// leaves.
    private static func isRemembered(_ db: Database, _ place: RecordName) throws -> Bool {
        if try !Outbox.all(db, entity: place.entity, record: place.record).isEmpty { return true }
        if try QuarantinedRow.exists(db, place.entity, place.record) { return true }
        if try DeletedRowCache.contains(db, place) { return true }
        return try KnownVersions.contains(db, place) || OutboxHistory.names(db, place)
    }
}

extension RecordState: FetchableRecord {
    /// Reads how a row stands out of the columns `tidemark_state` and `tidemark_reason`, where a query has joined the
    /// table to its view `tidemark_state_…`: ``confirmed`` where that says nothing of the row.
    ///
    /// - Throws: an error of GRDB's where the columns hold no text.
    public init(row: Row) throws {
        let name: String? = try row.decode(forColumn: "tidemark_state")
        // A view of a later version may know more states, none of which is that all is done.
        self =
            try name.map {
                Self(
                    RecordStateRule.Name(rawValue: $0) ?? .pending, reason: try row.decode(forColumn: "tidemark_reason")
                )
            } ?? .confirmed
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
