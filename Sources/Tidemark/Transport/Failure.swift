import GRDB
import TidemarkCore
import TidemarkWire

extension TransportResponse {
    /// The wait that a header asks for, in milliseconds. A date is held against the server's clock where that is told:
    /// the device's own may be wrong by any time.
    func wait(_ name: String) -> Int64? {
        let now = header("Date").flatMap(RetryAfter.date) ?? wallClockMilliseconds()
        return header(name).flatMap { RetryAfter.milliseconds($0, now: now) }
    }
}

/// A failed exchange: what the machine is told, and what people are told.
struct Failure: Error {
    var kind: FailureClass
    /// The wait that the server asked for, in milliseconds.
    var wait: Int64?
    var error: SyncError
    /// The server's own problem document, where the answer has one. After a gap it says where the lane broke off.
    var problem: Problem?
    /// Whether every sign says that this server itself answered, and no proxy before it: rows go on nothing less.
    var isOurs = false

    /// Whether a transaction that was whole could not be committed.
    var isOfCommit = false

    /// Whether it is the token that does not grant the push: no operation is at fault.
    var isOfRights: Bool { problem?.code == .scopeReadOnly }
    /// Whether an operation may be at fault: the server says so in its own words, and of what it read.
    var mayBeOfOperation: Bool {
        isOurs && [.malformedRequest, .invalidIdentifier, .limitOutOfRange].contains(problem?.code)
    }

    /// An answer that is not a success.
    init(_ response: TransportResponse, scope: Scope) {
        problem = response.body.withUnsafeBytes { Problem(from: $0) }
        kind = problem?.code == .invalidCheckpoint ? .bootstrap : FailureClass(status: response.status)
        if problem?.code == .scopeForbidden || problem?.code == .scopeErased { kind = .forbidden }
        isOurs =
            problem != nil && response.header("Content-Type")?.lowercased().hasPrefix(Problem.contentType) == true
            && response.header(ProtocolVersion.header) != nil
        // A refusal that is not in the server's own words comes from a login page or a proxy: it says nothing about
        // what was sent, and may be gone the next time.
        if problem == nil, [.needsApp, .resolve, .bootstrap].contains(kind) { kind = .transient }
        wait = response.wait("Retry-After")
        let told = problem.map { $0.detail.isEmpty ? $0.code.title : $0.detail }
        let detail = told ?? "The answer's status is \(response.status)."
        let code = problem?.code == .scopeErased ? .scopeErased : Self.code(kind, response.status)
        error = SyncError(code, detail.printable, hint: problem?.code.hint ?? "", scope: scope)
    }

    private static func code(_ kind: FailureClass, _ status: Int) -> SyncError.Code {
        switch kind {
        case .transient: 500..<600 ~= status || [408, 425, 429].contains(status) ? .serverUnavailable : .answerUnusable
        case .server: .serverFailed
        case .unauthenticated: .unauthenticated
        case .forbidden: .scopeForbidden
        case .needsApp: status == 403 ? .scopeForbidden : .requestRefused
        // No answer's status says it: the driver does.
        case .halted: .stoppedByOperator
        case .resolve: .operationGap
        case .bootstrap: .checkpointExpired
        }
    }

    /// Anything thrown on the way.
    init(_ thrown: any Error, scope: Scope) {
        switch thrown {
        case let failure as Failure: self = failure
        case let error as SyncError:
            let isToken = [.unauthenticated, .tokenUnavailable].contains(error.code)
            let refusal: FailureClass = error.code == .stoppedByOperator ? .halted : .needsApp
            kind = error.recovery == .wait ? .transient : isToken ? .unauthenticated : refusal
            self.error = error
            self.error.scope = error.scope ?? scope
        case let error as JSONError:
            kind = .transient
            self.error = SyncError(
                .answerUnusable, "The answer is not what this server sends: \(error.reason.rawValue).",
                hint: "It is asked for again.", scope: scope)
        default:
            kind = .transient
            self.error = SyncError(
                .networkUnavailable, "No answer came from the server.", hint: "It is tried again by itself.",
                scope: scope)
        }
    }

    /// The pages of a snapshot do not fit together any more.
    static func snapshotChanged(_ scope: Scope) -> Failure {
        let problem = Problem(.snapshotExpired, "The order of entities has changed.")
        let error = SyncError(.checkpointExpired, problem.detail, hint: problem.code.hint, scope: scope)
        return Failure(kind: .bootstrap, error: error, problem: problem)
    }

    private init(kind: FailureClass, error: SyncError, problem: Problem?) {
        self.kind = kind
        self.error = error
        self.problem = problem
    }

    /// The database's own failures, without the statement and its values.
    static func database(_ thrown: any Error, scope: Scope) -> Failure {
        if thrown is SyncError || thrown is Failure || thrown is JSONError { return Failure(thrown, scope: scope) }
        if let error = thrown as? DatabaseError {
            var failure = Failure(SyncError(error, scope: scope), scope: scope)
            failure.isOfCommit = error.sql == Database.commitSQL
            return failure
        }
        let error = SyncError(
            .databaseFailed, "The database did not take the change (\(type(of: thrown))).",
            hint: "Look at the app's log; it is tried again by itself.", scope: scope)
        return Failure(error, scope: scope)
    }
}
