import TidemarkWire

/// A page of a snapshot, read to its end before anything is applied. The changes stay in its bytes.
struct SnapshotAnswer: Hashable, Sendable {
    /// The highest number of records that a snapshot may claim (W94): numbers of many scopes are added up.
    static let mostRecords: Int64 = 1 << 40

    var body: [UInt8]
    var scope: String
    var epoch: String?
    /// Where the array of changes stands in the body.
    var changes: Range<Int>
    var token: String
    /// Where the next page begins; `nil` on the last one.
    var cursor: String?
    /// The checkpoint of the snapshot's boundary, on the last page.
    var nextSince: String?
    /// The version that the snapshot is fixed at.
    var version: Version
    /// The number of records of state that the whole snapshot brings, where its first page says so (W94).
    var records: Int64?

    var hasMore: Bool { cursor != nil }

    init(body: [UInt8]) throws(JSONError) {
        let parts = try body.reading { (reader: inout JSONReader) throws(JSONError) -> Parts in
            try Parts(from: &reader)
        }
        guard let scope = parts.scope, let changes = parts.changes, let token = parts.token, let version = parts.head,
            let hasMore = parts.hasMore, hasMore == (parts.cursor != nil)
        else { throw JSONError(.missingMember, at: body.count) }
        self.body = body
        self.scope = scope
        epoch = parts.epoch
        self.changes = changes
        self.token = token
        cursor = parts.cursor
        nextSince = parts.nextSince
        self.version = version
        records = parts.records
    }

    private struct Parts {
        var scope: String?
        var epoch: String?
        var changes: Range<Int>?
        var token: String?
        var cursor: String?
        var hasMore: Bool?
        var nextSince: String?
        var head: Version?
        var records: Int64?

        init(from reader: inout JSONReader) throws(JSONError) {
            try reader.enterObject()
            while let name = try reader.nextMember() {
                switch reader.string(name) {
                case "scope": scope = try reader.readString()
                case "epoch": epoch = try reader.readOptionalString()
                case "changes":
                    guard reader.peek() == UInt8(ascii: "[") else { throw JSONError(.wrongType, at: reader.index) }
                    changes = try reader.skip()
                case "snapshotToken": token = try reader.readString()
                case "pageCursor": cursor = try reader.readOptionalString()
                case "hasMore": hasMore = try reader.readBool()
                case "nextSince": nextSince = try reader.readOptionalString()
                case "head": head = try reader.readInteger(in: 0...Int64.max)
                case "records": records = try reader.readInteger(in: 0...mostRecords)
                default: try reader.skip()
                }
            }
            try reader.finish()
        }
    }
}
