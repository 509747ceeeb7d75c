import CLibPQ
import Foundation
import TidemarkCore

/// One connection to a server: it has one owner, one thread at a time, and is closed when its owner lets go of it.
///
/// Requests are sent without waiting for the answers to those before (libpq's pipeline mode), and answered together by
/// ``receive()``. So a transaction of many statements costs few round trips.
struct Connection: ~Copyable {
    private enum Pending {
        case preparation(of: String)
        /// `isAsked`: whether somebody wants the answer; without it only an error counts.
        case run(String, isAsked: Bool)

        /// Whether its statement is never out of date: it is prepared each time, or its answer has always one form.
        var isUpToDate: Bool {
            switch self {
            case .preparation(let name), .run(let name, _): name.isEmpty || name.hasPrefix(Statement.shapePrefix)
            }
        }
    }

    private let handle: OpaquePointer
    private let address: ServerAddress
    /// How long the server may leave a request unanswered. Its own limits end a statement long before.
    private let patience: Duration
    /// Warnings that came, written by libpq's callback.
    private let warnings: UnsafeMutablePointer<Int>
    private var prepared: Set<String> = []
    private var pending: [Pending] = []
    private var parameters = ParameterBuffer()
    /// Whether the connection is lost, so that no request arrives any more.
    private(set) var isLost = false

    init(to address: ServerAddress, patience: Duration) throws(PostgresError) {
        guard let handle = address.connect() else { throw PostgresError(.resources, "no memory for a connection") }
        guard PQstatus(handle) == CONNECTION_OK, PQsetnonblocking(handle, 1) == 0, PQenterPipelineMode(handle) == 1
        else {
            let message = address.told(PQerrorMessage(handle))
            PQfinish(handle)
            throw PostgresError(.connection, message)
        }
        warnings = .allocate(capacity: 1)
        warnings.initialize(to: 0)
        PQsetNoticeReceiver(
            handle,
            { warnings, notice in
                guard let severity = PQresultErrorField(notice, Int32(TIDEMARK_DIAG_SEVERITY)) else { return }
                if strcmp(severity, "WARNING") == 0 { warnings?.assumingMemoryBound(to: Int.self).pointee += 1 }
            }, warnings)
        self.handle = handle
        self.address = address
        self.patience = patience
    }

    deinit {
        PQfinish(handle)
        warnings.deallocate()
    }

    /// Warnings since the connection was made.
    var warningCount: Int { warnings.pointee }

    /// Requests whose answers have not been taken.
    var pendingCount: Int { pending.count }

    /// Puts a request on its way. Whether it went well is seen at the next ``receive()``.
    mutating func send(_ request: Request, isAsked: Bool) throws(PostgresError) {
        let statement = request.statement
        // A statement without a name is prepared each time, and takes the place of the last such one.
        if statement.name.isEmpty || prepared.insert(statement.name).inserted {
            guard PQsendPrepare(handle, statement.name, statement.sql, 0, nil) == 1 else { throw lost() }
            pending.append(.preparation(of: statement.name))
        }
        parameters.fill(request.parameters)
        let isSent = parameters.withPointers { count, values, lengths, formats in
            PQsendQueryPrepared(handle, statement.name, count, values, lengths, formats, 1)
        }
        guard isSent == 1 else { throw lost() }
        pending.append(.run(statement.name, isAsked: isAsked))
    }

    /// Takes the answers to everything that was sent, and returns those that were asked for, in their order.
    ///
    /// - Throws: the first error, after all answers were taken; or that the connection is lost.
    mutating func receive() throws(PostgresError) -> [QueryResult] {
        guard PQpipelineSync(handle) == 1 else { throw lost() }
        let expected = pending
        pending.removeAll(keepingCapacity: true)
        var results: [QueryResult] = []
        var failure: PostgresError?
        for entry in expected {
            let result = try next()
            var error = error(of: result)
            // Such a statement is not out of date: the server cannot do what it asks for.
            if entry.isUpToDate, error?.sqlState == "0A000" { error?.code = .other }
            if let error {
                PQclear(result)
                guard !error.code.endsConnection else {
                    isLost = true
                    throw error
                }
                if case .preparation(let name) = entry { prepared.remove(name) }
                failure = failure ?? error
            } else if case .run(_, true) = entry {
                results.append(QueryResult(result))
            } else {
                PQclear(result)
            }
            guard try take() == nil else { throw lost("an answer came that was not asked for") }
        }
        let end = try next()
        let status = PQresultStatus(end)
        PQclear(end)
        guard status == PGRES_PIPELINE_SYNC else { throw lost("an answer came that was not asked for") }
        if let failure { throw failure }
        return results
    }

    /// Returns the messages of others on channels that this connection listens to; waits for them for a while.
    mutating func messages(within time: Duration) throws(PostgresError) -> [String] {
        guard pending.isEmpty, !isLost else { throw lost() }
        if isReadable(for: time.milliseconds, events: Int16(POLLIN)) {
            guard PQconsumeInput(handle) == 1 else { throw lost() }
        }
        var messages: [String] = []
        while let message = PQnotifies(handle) {
            if let text = message.pointee.extra { messages.append(String(cString: text)) }
            PQfreemem(message)
        }
        guard PQstatus(handle) == CONNECTION_OK else { throw lost() }
        return messages
    }

    /// Whether a connection that nobody has asked anything is still there. A server that goes says so to all.
    mutating func isAlive() -> Bool {
        guard !isLost, pending.isEmpty else { return false }
        while isReadable(for: 0, events: Int16(POLLIN)) {
            guard PQconsumeInput(handle) == 1 else { return false }
            _ = PQisBusy(handle)
        }
        return PQstatus(handle) == CONNECTION_OK
    }
}

// MARK: - Waiting

extension Connection {
    private mutating func next() throws(PostgresError) -> OpaquePointer {
        guard let result = try take() else { throw lost("an answer did not come") }
        return result
    }

    /// The next answer; `nil` at the end of those to one request.
    private mutating func take() throws(PostgresError) -> OpaquePointer? {
        let deadline = ContinuousClock.now + patience
        while true {
            let unsent = PQflush(handle)
            guard unsent >= 0 else { throw lost() }
            if PQisBusy(handle) == 0 { return PQgetResult(handle) }
            let events = unsent > 0 ? POLLIN | POLLOUT : POLLIN
            let rest = deadline - ContinuousClock.now
            guard rest > .zero else { throw lost("the server has not answered for \(patience)") }
            // Rounded up: a wait of nothing would turn round and round.
            guard isReadable(for: (rest + .milliseconds(1)).milliseconds, events: Int16(events)) else { continue }
            guard PQconsumeInput(handle) == 1 else { throw lost() }
        }
    }

    private func isReadable(for milliseconds: Int64, events: Int16) -> Bool {
        var entry = pollfd(fd: PQsocket(handle), events: events, revents: 0)
        return poll(&entry, 1, Int32(clamping: milliseconds)) > 0
    }

    private mutating func lost(_ reason: String? = nil) -> PostgresError {
        isLost = true
        return PostgresError(.connection, reason ?? address.told(PQerrorMessage(handle)))
    }

    private func error(of result: OpaquePointer) -> PostgresError? {
        let status = PQresultStatus(result)
        if status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK { return nil }
        let state = field(result, TIDEMARK_DIAG_SQLSTATE)
        var error = PostgresError(
            sqlState: state.map { String(cString: $0) } ?? "",
            message: address.told(field(result, TIDEMARK_DIAG_MESSAGE) ?? PQresultErrorMessage(result)))
        let place = field(result, TIDEMARK_DIAG_CONSTRAINT) ?? field(result, TIDEMARK_DIAG_COLUMN)
        error.place = place.map { String(cString: $0) }
        // The server says why it goes, or libpq that it is gone.
        let severity = field(result, TIDEMARK_DIAG_SEVERITY).map { String(cString: $0) } ?? ""
        if PQstatus(handle) != CONNECTION_OK || severity == "FATAL" || severity == "PANIC" { error.code = .connection }
        return error
    }

    private func field(_ result: OpaquePointer, _ code: Int) -> UnsafeMutablePointer<CChar>? {
        PQresultErrorField(result, Int32(truncatingIfNeeded: code))
    }
}
