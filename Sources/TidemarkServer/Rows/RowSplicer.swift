import TidemarkWire

/// Splices stored rows into a page: a row's fields are copied as they are, never parsed. A page ends early rather than
/// pass its byte budget, and its first change always fits.
struct RowSplicer {
    var writer: JSONWriter
    /// `nil`: rows are whole.
    var fields: FieldSelection?
    private(set) var isFull = false
    private var taken = 0
    private var written = 0
    private var passedOver = (rows: 0, bytes: 0)
    /// Bytes that differences saved: they count as written, so that what is read for one page stays bounded too.
    private var saved = 0
    private let limit: Int
    private let byteBudget: Int

    init(limit: Int, byteBudget: Int) {
        self.limit = limit
        self.byteBudget = byteBudget
        writer = JSONWriter(capacity: min(byteBudget, limit * 320))
    }

    /// Counts a change in, or finds the page full.
    mutating func hasRoom(for change: BorrowedChange) -> Bool { hasRoom(bytes: change.payload.count) }

    mutating func hasRoom(bytes: Int) -> Bool {
        isFull = taken == limit || (taken > 0 && writer.bytes.count + saved + bytes > byteBudget)
        if !isFull { taken += 1 }
        return !isFull
    }

    /// Counts a row that this reader is not sent; so many of them, or of their bytes, end the page too, that no request
    /// reads on for ever.
    mutating func passOver(_ change: BorrowedChange) -> Bool {
        isFull = passedOver.rows == Self.passedOverLimit || passedOver.bytes > byteBudget
        passedOver.rows += 1
        passedOver.bytes += change.payload.count
        return !isFull
    }

    /// Ends the page where something else of it is full.
    mutating func end() { isFull = true }

    /// Rows that one page passes over, at most.
    static let passedOverLimit = 10_000

    /// Says that there is no such record, instead of a change.
    mutating func appendAbsent(_ entity: String, _ record: RecordID, asOf head: Version) {
        separate()
        writer.raw("{\"type\":\"none\",\"entity\":")
        writer.string(entity)
        writer.member("id", record.text)
        writer.member("version", head)
        writer.raw("}")
    }

    mutating func separate() {
        if written > 0 { writer.raw(",") }
        written += 1
    }

    /// - Parameter difference: how the row differs from the one that the reader holds; `nil`: it travels whole.
    mutating func append(_ change: BorrowedChange, _ difference: RowDifference?) {
        guard let difference else { return append(change) }
        let start = writer.bytes.count
        begin(change, difference.base == nil ? "upsert" : "patch")
        if let base = difference.base {
            writer.member("base", base)
            writer.memberName("patch")
            writer.patches(difference.patches)
        }
        if difference.isPartial { writer.raw(",\"partial\":true") }
        writer.raw(",\"data\":")
        writer.raw(difference.data)
        writer.raw("}")
        saved += max(0, change.payload.count - (writer.bytes.count - start))
    }

    mutating func append(_ change: BorrowedChange) {
        var partial: [UInt8]?
        if let fields, change.kind != .delete {
            partial = fields.object(from: change.payload)
            // A row without any of the fields has nothing to say about them.
            if partial == nil { return }
        }
        switch change.kind {
        case .upsert: begin(change, "upsert")
        case .delete: begin(change, "delete")
        case .event: begin(change, "event")
        case .idmap: return appendIDMap(change)
        }
        if let partial {
            writer.raw(",\"partial\":true,\"data\":")
            writer.raw(partial)
        } else if change.kind != .delete {
            writer.raw(",\"data\":")
            writer.raw(change.payload)
        } else if !change.payload.isEmpty {
            writer.raw(",")
            writer.raw(change.payload)
        }
        writer.raw("}")
    }

    private mutating func appendIDMap(_ change: BorrowedChange) {
        separate()
        writer.raw("{\"type\":\"idmap\",")
        writer.raw(change.payload)
        writer.member("version", change.version)
        writer.raw("}")
    }

    private mutating func begin(_ change: BorrowedChange, _ type: StaticString) {
        separate()
        writer.raw("{\"type\":\"")
        writer.raw(type)
        writer.raw("\",\"entity\":")
        writer.string(utf8: change.entity)
        writer.raw(",\"id\":")
        writer.string(utf8: change.record)
        writer.member("version", change.version)
        if change.kind == .delete { writer.memberName("deletedAt") } else { writer.memberName("updatedAt") }
        Timestamp.write(milliseconds: change.time, to: &writer)
    }
}
