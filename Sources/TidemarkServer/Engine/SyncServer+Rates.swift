package import TidemarkCore
package import TidemarkWire

extension SyncServer {
    /// Counts a request of a caller; one without a name, of a host that does not tell callers apart, is not counted.
    ///
    /// - Throws: 429 `too_many_requests`, with the time until the next one may come.
    package func countRequest(of caller: String) throws(Problem) {
        guard !caller.isEmpty, let wait = rates.request(of: Self.counted(caller), at: instant) else { return }
        throw tooMany("One caller may ask \(limits.requestsPerSecond) times in a second here.", wait)
    }

    /// Counts a request for a shared page, which no caller's share has to pay for.
    ///
    /// - Throws: 429 `too_many_requests`, with the time until the next one may come.
    func countSharedPage(of scope: Scope) throws(Problem) {
        guard let wait = rates.page(of: scope, at: instant) else { return }
        throw tooMany("A scope's shared pages may be asked for \(limits.requestsPerSecond) times in a second.", wait)
    }

    /// - Parameter wait: milliseconds until the next one may come.
    private func tooMany(_ detail: String, _ wait: Int64) -> Problem {
        var problem = Problem(.tooManyRequests, detail)
        problem.retryAfter = Int(wait / 1000) + 1
        return problem
    }

    /// Whether a user may write to one scope more that nobody has written to.
    func mayOpenScope(_ caller: String) -> Bool { rates.mayOpen(Self.counted(caller), at: instant) }

    /// A user has written to one scope more.
    func openedScope(_ caller: String) { rates.opened(Self.counted(caller), at: instant) }

    package var instant: Instant { Instant(milliseconds: configuration.uptime().milliseconds) }

    /// The caller's name in the counts, cut to a bounded length. A longer name is refused everywhere else.
    private static func counted(_ caller: String) -> String {
        guard caller.utf8.count > Access.principalLimit else { return caller }
        return String(decoding: caller.utf8.prefix(Access.principalLimit), as: UTF8.self)
    }
}
