import TidemarkCore
import TidemarkWire

/// The answer to one exchange, read to its end before anything is applied. The changes stay where they are: they are
/// bound to statements straight from the bytes.
struct Answer: Hashable, Sendable {
    struct Result: Hashable, Sendable {
        var key: OperationKey
        var verdict: Verdict
    }

    struct Page: Hashable, Sendable {
        var scope: String
        var since: String?
        var epoch: String?
        /// Where the array of changes stands in the body.
        var changes: Range<Int>
        var nextSince: String
        var hasMore: Bool
        /// The horizon of the scan that the page belongs to.
        var head: Version
    }

    var body: [UInt8]
    var results: [Result] = []
    /// The server's time, in milliseconds since 1970.
    var syncedAt: Int64?
    /// `nil` in the answer to a push without a pull.
    var page: Page?
    /// The epoch in which the verdicts were given, where no page came with them.
    var epoch: String?
    /// What the operator asks of this device.
    var remedy: RemedyMachine.Event?

    init(body: [UInt8]) throws(JSONError) {
        self.body = body
        let parts = try body.reading { (reader: inout JSONReader) throws(JSONError) -> Parts in
            try Parts(from: &reader)
        }
        results = parts.results
        syncedAt = parts.syncedAt
        remedy = parts.remedy
        guard let changes = parts.changes else {
            epoch = parts.epoch
            return
        }
        guard let scope = parts.scope, let next = parts.nextSince, let hasMore = parts.hasMore, let head = parts.head
        else { throw JSONError(.missingMember, at: body.count) }
        page = Page(
            scope: scope, since: parts.since, epoch: parts.epoch, changes: changes, nextSince: next, hasMore: hasMore,
            head: head)
    }

    private struct Parts {
        var results: [Result] = []
        var syncedAt: Int64?
        var scope: String?
        var since: String?
        var epoch: String?
        var changes: Range<Int>?
        var nextSince: String?
        var hasMore: Bool?
        var head: Version?
        var remedy: RemedyMachine.Event?

        init(from reader: inout JSONReader) throws(JSONError) {
            try reader.enterObject()
            while let name = try reader.nextMember() {
                switch reader.string(name) {
                case "results":
                    try reader.enterArray()
                    while try reader.nextElement() {
                        let (key, verdict) = try Verdict.read(from: &reader)
                        results.append(Result(key: key, verdict: verdict))
                    }
                case "syncedAt": syncedAt = try reader.readInteger(in: 0...Int64.max)
                case "scope": scope = try reader.readString()
                case "since": since = try reader.readOptionalString()
                case "epoch": epoch = try reader.readOptionalString()
                case "changes":
                    guard reader.peek() == UInt8(ascii: "[") else { throw JSONError(.wrongType, at: reader.index) }
                    changes = try reader.skip()
                case "nextSince": nextSince = try reader.readString()
                case "hasMore": hasMore = try reader.readBool()
                case "head": head = try reader.readInteger(in: 0...Int64.max)
                case "remedy":
                    if reader.peek() == UInt8(ascii: "n") {
                        try reader.readNull()
                        remedy = .forgotten
                    } else {
                        remedy = try NumberedRemedy.read(from: &reader).map { .heard($0) }
                    }
                default: try reader.skip()
                }
            }
            try reader.finish()
        }
    }
}

/// A change of a page, still in the page's bytes.
struct IncomingChange {
    /// `absent`: there is no such record; an answer to a question for it by name.
    enum Kind { case upsert, delete, idmap, absent, unknown }

    var kind: Kind = .unknown
    var entity: JSONReader.Text
    var id: JSONReader.Text
    var version: Version
    var data: Range<Int>?
    /// Where patches of large texts stand that belong to the data.
    var patches: Range<Int>?
    /// Whether missing fields are unchanged; else the record does not have them.
    var isPartial = false
    /// Whether the server's row before the change is needed to make the row whole.
    var isDifference: Bool { isPartial || patches != nil }
    /// A delete: the version that it was made on, where others had written since.
    var base: Version?
    /// A delete: the record lives on in another scope.
    var isMove = false
    /// An idmap: the temporary id, and whose it is.
    var temporary: JSONReader.Text?
    var client: JSONReader.Text?

    /// `nil` for an element that lacks what every change has: a kind of a newer server.
    static func read(from reader: inout JSONReader) throws(JSONError) -> IncomingChange? {
        var parts = Parts()
        try reader.enterObject()
        while let name = try reader.nextMember() { try parts.read(name, from: &reader) }
        guard let entity = parts.entity, let id = parts.id, let version = parts.version else { return nil }
        return IncomingChange(
            kind: parts.kind, entity: entity, id: id, version: version, data: parts.data, patches: parts.patches,
            isPartial: parts.isPartial, base: parts.base, isMove: parts.isMove, temporary: parts.temporary,
            client: parts.client)
    }

    /// The members of a change, as far as they are read.
    private struct Parts {
        var kind: Kind = .unknown
        var entity, id, temporary, client: JSONReader.Text?
        var version, base: Version?
        var data, patches: Range<Int>?
        var (isPartial, isMove) = (false, false)

        mutating func read(_ name: JSONReader.Text, from reader: inout JSONReader) throws(JSONError) {
            if reader.matches(name, "type") {
                kind = IncomingChange.kind(try reader.readText(), in: reader)
            } else if reader.matches(name, "entity") {
                entity = try reader.readText()
            } else if reader.matches(name, "id") {
                id = try reader.readText()
            } else if reader.matches(name, "version") {
                version = try reader.readInteger()
            } else if reader.matches(name, "data") {
                data = try reader.skip()
            } else if reader.matches(name, "patch") {
                patches = try reader.skip()
            } else if reader.matches(name, "partial") {
                isPartial = try reader.readBool()
            } else if reader.matches(name, "base") {
                base = try reader.readInteger()
            } else if reader.matches(name, "moved") {
                isMove = try reader.readBool()
            } else if reader.matches(name, "tempId") {
                temporary = try reader.readText()
            } else if reader.matches(name, "clientId") {
                client = try reader.readText()
            } else {
                try reader.skip()
            }
        }
    }

    private static func kind(_ type: JSONReader.Text, in reader: JSONReader) -> Kind {
        if ["upsert", "event", "patch"].contains(where: { reader.matches(type, $0) }) { return .upsert }
        if reader.matches(type, "delete") { return .delete }
        if reader.matches(type, "idmap") { return .idmap }
        return reader.matches(type, "none") ? .absent : .unknown
    }
}
