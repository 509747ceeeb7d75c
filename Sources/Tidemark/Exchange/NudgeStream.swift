import TidemarkCore
import TidemarkWire

/// One stream of nudges: `GET /sync/events` of some scopes, until it ends.
struct NudgeStream {
    /// Servers take so many in one stream; a device that follows more asks for the news of the others at its ticks.
    static let scopeLimit = 100
    /// A stream on which nothing came for so long is gone, whatever the connection says. Servers say something every
    /// 15 s.
    static let silence: Duration = .seconds(45)

    /// Why a stream has ended.
    enum End: Hashable, Sendable {
        /// The server has ended it in order.
        case ended
        /// It was refused, or broke off. `wait`: what the server asked for, in milliseconds.
        case failed(FailureClass, wait: Int64?)
        /// The caller wants another one, or none.
        case replaced
    }

    let transport: any StreamingTransport
    let scopes: [Scope]

    /// Follows the stream until it ends, nothing comes any more, or `isOutdated` returns.
    ///
    /// - Parameters:
    ///   - opened: called once the server's first bytes are there.
    ///   - hear: takes each nudge.
    func run(
        opened: @escaping @Sendable () async -> Void, hear: @escaping @Sendable (Nudge) async -> Void,
        isOutdated: @escaping @Sendable () async -> Void
    ) async -> End {
        let heard = Locked(Dependencies.current.uptime)
        return await withTaskGroup(of: End.self) { group in
            group.addTask { await self.follow(heard, opened, hear) }
            group.addTask { await Self.silence(since: heard) }
            group.addTask {
                await isOutdated()
                return .replaced
            }
            let end = await group.next() ?? .ended
            group.cancelAll()
            return Task.isCancelled ? .replaced : end
        }
    }

    private func follow(
        _ heard: Locked<Instant>, _ opened: @escaping @Sendable () async -> Void,
        _ hear: @escaping @Sendable (Nudge) async -> Void
    ) async -> End {
        let query = scopes.map { TransportRequest.QueryItem("scope", $0.name) }
        let request = TransportRequest(
            path: "/sync/events", query: query, headers: ["Accept": "text/event-stream"])
        let reader = Locked((reader: EventReader(), isOpen: false))
        do {
            let answer = try await transport.follow(request) { bytes in
                heard.withLock { $0 = Dependencies.current.uptime }
                let (events, isFirst) = try reader.withLock { state in
                    defer { state.isOpen = true }
                    return (try state.reader.read(bytes), !state.isOpen)
                }
                if isFirst { await opened() }
                for event in events where event.name == Nudge.event {
                    // Events that another version of the server may send besides are no reason to end.
                    if let nudge = event.data.withUnsafeBytes({ try? Nudge(from: $0) }) { await hear(nudge) }
                }
            }
            guard answer.status == 200 else { return Self.failed(Failure(answer, scope: scopes[0])) }
            return reader.withLock(\.reader.retry).map { .failed(.transient, wait: $0) } ?? .ended
        } catch { return Self.failed(Failure(error, scope: scopes[0])) }
    }

    private static func failed(_ failure: Failure) -> End { .failed(failure.kind, wait: failure.wait) }

    private static func silence(since heard: Locked<Instant>) async -> End {
        while !Task.isCancelled {
            let quiet = Dependencies.current.uptime - heard.withLock { $0 }
            guard quiet < silence.milliseconds else { break }
            try? await Dependencies.current.sleep(for: .milliseconds(silence.milliseconds - quiet))
        }
        return .failed(.transient, wait: nil)
    }
}
