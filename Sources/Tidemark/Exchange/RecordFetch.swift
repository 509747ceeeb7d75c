import GRDB
import TidemarkWire

/// Asks the server for records of one scope by name, and takes the answers in.
struct RecordFetch: Sendable {
    /// Records that one request names.
    static let requestLimit = Limits().namedRecords
    /// Bytes of ids in one request's address, as they are written there: proxies take addresses of a few kilobytes.
    static let addressLimit = 4096
    /// Rounds in which nothing more is learnt before the rest is left for later.
    private static let patience = 3

    var schemaCache: SchemaCache
    var scope: Scope
    var schema: SyncSchema
    var declarations: Declarations
    /// Fields of the named records whose targets come too, as `field:entity`.
    var follow: [String] = []
    /// Set where a comparison found that the records differ.
    var repair: RecordRepair?

    /// The traffic of a fetch, and its findings.
    struct Result: Hashable, Sendable {
        var counts = SyncReport.Counts()
        var unsent: [RefetchQueue.Record] = []
        var unrepaired: [RefetchQueue.Record: String] = [:]
        /// Records of which no answer could be taken in.
        var unanswered: [RefetchQueue.Record] = []
    }

    /// Fetches the records, however many requests it takes, and returns what that cost and did.
    ///
    /// - Throws: ``Failure`` where the network, the server or the database fails; `JSONError` or ``SyncError``
    ///   `answer_unusable` where the answer cannot be used.
    func run(_ records: [RefetchQueue.Record]) async throws -> Result {
        var result = Result()
        for (entity, named) in Dictionary(grouping: records, by: \.entity).sorted(by: { $0.key < $1.key }) {
            var waiting = named
            var idle = 0
            while !waiting.isEmpty, idle < Self.patience {
                let part = Self.part(of: waiting)
                let answered = try await fetch(entity, part, &result)
                waiting.removeAll { answered.contains($0) }
                idle = answered.isEmpty ? idle + 1 : 0
            }
            result.unanswered += waiting
        }
        return result
    }

    /// As many of the records as one request names.
    static func part(of records: [RefetchQueue.Record]) -> ArraySlice<RefetchQueue.Record> {
        var bytes = 0
        let count = records.prefix(requestLimit).firstIndex { record in
            // Everything but letters and digits may take three bytes.
            bytes += 4 + record.id.text.utf8.reduce(0) { $0 + (isPlain($1) ? 1 : 3) }
            return bytes > addressLimit
        }
        return records.prefix(max(1, min(count ?? requestLimit, requestLimit)))
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// The records that the answer spoke of; none where it was out of date before it could be taken in.
    private func fetch(
        _ entity: String, _ records: ArraySlice<RefetchQueue.Record>, _ result: inout Result
    ) async throws -> Set<RefetchQueue.Record> {
        let scope = scope
        let since = try await database { try await schemaCache.file.read { try ScopeRecord.read($0, scope) } }
            .checkpoint
        let request = request(entity, records, since: since)
        let response: TransportResponse
        do { response = try await schemaCache.transport.send(request) } catch { throw Failure(error, scope: scope) }
        result.counts.roundTrips += 1
        result.counts.bytesSent += response.bytesSent
        result.counts.bytesReceived += response.bytesReceived
        guard response.status == 200 else { throw Failure(response, scope: scope) }
        let fetched = try FetchedRecords(body: response.body)
        guard fetched.scope == scope.name, fetched.since == since else {
            throw SyncError(
                .answerUnusable, "The answer belongs to another request.", hint: "It is asked for again.", scope: scope)
        }
        let transaction = FetchTransaction(
            fetched: fetched, scope: scope, schema: schema, declarations: declarations, now: wallClockMilliseconds(),
            repair: repair, unsent: Set(result.unsent))
        let outcome = try await database {
            try await schemaCache.file.of(scope).writeWithoutTransaction(at: .records) { db in try transaction.run(db) }
        }
        schemaCache.measures.update { $0 += SyncMeasures(outcome) }
        result.counts.received += outcome.received
        result.counts.applied += outcome.applied
        result.counts.quarantined += outcome.quarantined
        result.unsent += outcome.unsent
        result.unrepaired.merge(outcome.unrepaired) { $1 }
        return outcome.pageTaken ? try fetched.names(schema) : []
    }

    func request(
        _ entity: String, _ records: ArraySlice<RefetchQueue.Record>, since: String?
    ) -> TransportRequest {
        var query = [TransportRequest.QueryItem("scope", scope.name)]
        if let since { query.append(TransportRequest.QueryItem("since", since)) }
        query += records.map { TransportRequest.QueryItem("id", $0.id.text) }
        query += follow.map { TransportRequest.QueryItem("follow", $0) }
        return TransportRequest(
            path: "/sync/records/\(PercentEncoding.encoded(entity))", query: query,
            headers: TransportRequest.headers(clientID: schema.clientID))
    }

    private func database<T: Sendable>(_ work: @Sendable () async throws -> T) async throws -> T {
        do { return try await work() } catch { throw Failure.database(error, scope: scope) }
    }
}
