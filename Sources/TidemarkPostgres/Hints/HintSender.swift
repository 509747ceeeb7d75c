import Foundation
import TidemarkCore
import TidemarkServer

/// Tells other nodes which scopes this one has changed: on a thread and a connection of its own, behind the commits,
/// which never wait for it. What cannot be told is dropped: the others look by themselves.
final class HintSender: @unchecked Sendable {  // because what changes is only touched under `condition`
    private let node: String
    private let connector: Connector
    private let condition = NSCondition()
    private var waiting = Hint.Scopes.none
    private var isClosed = false
    private var isRunning = false
    private let ended = DispatchGroup()

    init(_ connector: Connector, node: String) {
        self.connector = connector
        self.node = node
    }

    /// Notes the scopes of a commit. The thread begins with the first of them.
    func changed(_ scopes: some Sequence<Scope>) {
        condition.withLock {
            guard !isClosed else { return }
            waiting.add(scopes.lazy.map(\.name))
            guard waiting != .none else { return }
            condition.signal()
            guard !isRunning else { return }
            isRunning = true
            ended.enter()
            let thread = Thread { [self] in
                run()
                ended.leave()
            }
            thread.name = "tidemark hints"
            thread.start()
        }
    }

    func close() {
        condition.withLock {
            isClosed = true
            condition.broadcast()
        }
    }

    func waitForEnd() { ended.wait() }

    private static let notify = Statement("notify", "SELECT pg_notify($1, $2)")

    private func run() {
        let line = Line(connector)
        let pause = PostgresStore.Configuration.bounded(connector.configuration.hintPause)
        while let scopes = take() {
            do {
                let session = try line.session()
                for message in Hint.messages(of: scopes, from: node) {
                    _ = try session.ask(Self.notify, .text(connector.configuration.schema), .text(message))
                }
            } catch {
                line.check()
                rest(max(pause, connector.rest))
            }
            rest(pause)
        }
    }

    /// Gathers what comes meanwhile; not for long, since the store's end waits for it.
    private func rest(_ time: Duration) { Thread.sleep(forTimeInterval: min(Double(time.milliseconds) / 1000, 1)) }

    /// Waits for something to tell; `nil` at the end.
    private func take() -> Hint.Scopes? {
        condition.withLock {
            while waiting == .none, !isClosed { condition.wait() }
            defer { waiting = .none }
            return isClosed ? nil : waiting
        }
    }
}
