/// The named limits of a server, with their defaults (Limits.md). A server may be configured otherwise.
public struct Limits: Hashable, Sendable {
    /// Changes on one page, at most, unless asked otherwise.
    public var defaultPage = 500
    /// Changes on the largest page that may be asked for.
    public var maximumPage = 5000
    /// Requests of one caller on a server in a second, and ten times as many at once; 0: any number.
    public var requestsPerSecond = 1000
    /// Operations in one push.
    public var operations = 1000
    /// How long one push may hold the writer before it is ended behind an operation.
    public var pushTime = Duration.milliseconds(250)
    /// Bytes that one push may write before it is ended behind an operation.
    public var pushBytes = 16 << 20
    /// Rows that one push may have looked up for its references and chains before it is ended behind an operation.
    public var pushLookups = 20_000
    /// Bytes of a request's body after inflation.
    public var bodyBytes = 8 << 20
    /// Bytes of all bodies that are on their way to a server at one time.
    public var bodiesBytes = 64 << 20
    /// Bytes of memory for all pushes that are worked on at one time, as they are reckoned from their bodies.
    public var workBytes = 128 << 20
    /// Bytes of one record's fields.
    public var recordBytes = 1 << 20
    /// Bytes at which a page ends early; one change always fits.
    public var pageBytes = 4 << 20
    /// Bytes of pages that a server keeps for others who pull from the same place of a scope that nobody wrote to
    /// meanwhile; 0: none.
    public var keptPageBytes = 32 << 20
    /// Bytes of an answer's verdicts from which on large ones are told short; one always fits.
    public var resultBytes = 4 << 20
    /// Entities that one scope may hold records of, beside those that are declared.
    public var entities = 1000
    /// Rows that a scope may have, tombstones and events among them.
    public var scopeRows = 5_000_000
    /// Bytes of the fields of those rows.
    public var scopeBytes = 1 << 30
    /// Bytes of superseded rows that a scope keeps for readers in mid-scan, each reckoned with 256 more: beyond it
    /// those that were superseded first go before their time, until half of it is left.
    public var windowBytes = 64 << 20
    /// Scopes that nobody has written to and that one user may write to within a day, by way of one server; 0: any
    /// number.
    public var scopesPerPrincipal = 1000
    /// Devices of one caller that a scope remembers: another one takes the place of that which was silent for longest.
    public var devices = 1000
    /// Records that one request may name.
    public var namedRecords = 100
    /// Fields that one request may follow to other records.
    public var followedFields = 8
    /// Versions that a digest is computed back from the newest one, at most.
    public var digestRewind = 10_000
    /// Records that are read for the digest of a key range, in one request.
    public var digestScan = 100_000
    /// Bytes of records that one digest reads; one record always may.
    public var digestBytes = 32 << 20
    /// Parts of a key range in one answer.
    public var digestParts = 256
    /// Fields that one request may name.
    public var namedFields = 500
    /// Streams of nudges that are open at one time on a server.
    public var streams = 512
    /// Streams of one caller on a server.
    public var streamsPerPrincipal = 8
    /// Scopes of one stream.
    public var streamScopes = 100

    /// Bytes of one blob.
    public var blobBytes = 2 << 30
    /// Bytes of all blobs of a scope, with those that are being sent, each reckoned with 256 more. One user may be
    /// sending a quarter of it.
    public var scopeBlobBytes = 10 << 30
    /// Blobs of one scope that one user may be sending: parts that are kept until the rest comes.
    public var blobParts = 64
    /// Blobs that are sent and fetched at one time on a server; one user has a quarter of that.
    public var blobTransfers = 64

    /// Bytes of an `x-apiomat-delta` header.
    public var deltaHeaderBytes = 8 << 10

    /// The defaults.
    public init() {}
}

extension Limits {
    /// Fields that one list of records may be filtered by.
    package static let filters = 8
    /// Bytes of ids in one `x-apiomat-delta-deleted` header, but for those that the caller has named itself; a page
    /// ends early rather than name more.
    package static let deletedHeaderBytes = 8 << 10
    /// Bytes of an `Idempotency-Key`.
    package static let idempotencyKeyBytes = 255
    /// Bytes of a text in a device's report.
    package static let reportTextBytes = 64
    /// The counts that a device's report tells.
    package static let reportCounts: ClosedRange<Int64> = 0...1_000_000_000
    /// The numbers of remedies: those that every JSON reader keeps exact.
    package static let remedyNumbers: ClosedRange<Int64> = 0...(1 << 53)
    /// Names that one request may list in `fields`.
    package static let selectedFields = 100
    /// Names that one object may hold, and so a record's fields: the columns that SQLite allows a table.
    package static let names = 2000
    /// Places in JSON documents that one operation may name temporary ids in: each is looked for from the beginning.
    package static let documentPlaces = 64
    /// Temporary ids that the places of one operation may hold together: each may have to be looked up.
    package static let temporaryPlaces = 10_000
}

/// The addresses and headers of blobs, which the server and its client share (A12).
package enum BlobAddress {
    /// Behind where the protocol is mounted.
    package static let folder = "blobs"
    package static let offsetHeader = "Upload-Offset"
    /// A blob's bytes are taken in, and read, in pieces of so many bytes at most.
    package static let pieceBytes = 256 << 10

    /// Whether a request's target is a blob, wherever the protocol is mounted.
    package static func isBlob(path: String?) -> Bool {
        guard let parts = path?.prefix(while: { $0 != "?" }).split(separator: "/"), parts.count > 1 else {
            return false
        }
        return parts[parts.count - 2] == folder && BlobReference.isHash(parts[parts.count - 1])
    }
}

/// The protocol's version and the headers that carry it.
package enum ProtocolVersion {
    package static let current = 1
    package static let supported = [1]

    package static let header = "Tidemark-Protocol"
    package static let clientHeader = "Tidemark-Client"
    package static let declarationsHeader = "Tidemark-Declarations"
}

/// The addresses of shared pages, which the server and its client share.
package enum PageAddress {
    package static let prefix = "/sync/pages/"
    /// Bytes of an answer that names one, at most.
    package static let answerBytes = 4096
}

/// The headers of the delta dialect, which its server and its client share.
package enum DialectHeader {
    package static let delta = "x-apiomat-delta"
    package static let deltaDeleted = "x-apiomat-delta-deleted"
    package static let stamp = "Tidemark-Stamp"
}
