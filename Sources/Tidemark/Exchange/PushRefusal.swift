import TidemarkCore
import TidemarkWire

/// A push that the server refused in its own words. It is not sent again until something changes (B11): the token, what
/// the operator declared, or the app asks. A pull without operations goes on, and tells.
struct PushRefusal: Sendable {
    let error: SyncError
    /// The one operation that was sent, or the group, where it may be what is refused: only pulls that go through right
    /// after tell.
    var suspect: Exchange?
    /// How often the suspect was refused in a row.
    private let times: Int
    /// Whether everything is sent once more, since a pull went through.
    private(set) var isLifted = false
    private var hasPulled = false
    /// Whether it was the token that grants only reading: pulls go through, and say nothing of what may be pushed.
    private let isOfRights: Bool
    private let declarations: Declarations
    /// Refusals in a row.
    private let count: Int
    /// The earliest time of the next push: a server that takes every pull and no push is not asked in a hurry.
    private let next: Instant

    init(_ failure: Failure, of exchange: Exchange, after former: PushRefusal?, now: Instant) {
        error = failure.error
        isOfRights = failure.isOfRights
        suspect = failure.mayBeOfOperation && !exchange.onlyKeys.isEmpty ? exchange : nil
        // A single refusal proves nothing: the request may have been cut on its way.
        times = former.flatMap { $0.suspect?.onlyKeys == exchange.onlyKeys ? $0.times + 1 : nil } ?? 1
        declarations = exchange.declarations
        count = (former?.count ?? 0) + 1
        // A pull that goes through after a token was refused for the first time is sent with another token.
        let failures = isOfRights ? count : count - 1
        next =
            failures > 0
            ? now + Backoff().delay(failures: failures, class: failure.kind, jitter: Dependencies.current.random())
            : now
    }

    /// The refusal of an operation without which the same request goes through.
    var verdict: Verdict.Refusal {
        Verdict.Refusal(
            code: RejectionCode.requestRefused, detail: error.detail,
            hint: "The server refuses a request with this edit in it, and takes one without it. " + error.hint)
    }

    func isOutdated(by declarations: Declarations) -> Bool { declarations != self.declarations }

    /// How many operations are sent; `nil`: as many as ever. A token that grants only reading does not tell when it
    /// grants writing: one operation asks, after growing waits.
    func operationLimit(now: Instant) -> Int? { isLifted ? nil : isOfRights && hasPulled && now >= next ? 1 : 0 }

    /// A pull went through, with the same token.
    mutating func notePull(now: Instant) {
        hasPulled = true
        notePage(now: now)
    }

    /// So did the question for a page of a snapshot, which is no exchange.
    mutating func notePage(now: Instant) { isLifted = !isOfRights && (now >= next || suspect != nil && times == 1) }

    /// Whether the suspect is found out, if a request goes through without it now.
    var isProven: Bool { suspect != nil && times > 1 }
}
