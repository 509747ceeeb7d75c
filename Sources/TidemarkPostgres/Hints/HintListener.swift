import Foundation
import TidemarkCore
import TidemarkServer

/// Hears what other nodes tell, on a thread and a connection of its own. Where the connection is lost, another one is
/// made, and all scopes are looked at once; until then, and without any, nodes look by themselves.
final class HintListener: Sendable {
    /// How long the thread listens before it looks whether it is still wanted.
    private static let slice: Duration = .milliseconds(200)

    private let node: String
    private let connector: Connector
    private let hinted: HintedScopes
    private let ended = Guarded(false)

    init(_ connector: Connector, node: String, _ hinted: HintedScopes) {
        self.connector = connector
        self.node = node
        self.hinted = hinted
    }

    func start() {
        let thread = Thread { [self] in run() }
        thread.name = "tidemark listener"
        thread.start()
    }

    func end() { ended.withLock { $0 = true } }

    private var isEnded: Bool { ended.withLock { $0 } }

    private func run() {
        while !isEnded {
            do {
                let session = try connector.connect()
                try session.listen(connector.configuration.schema)
                // Hints from before this connection were heard by nobody, so all scopes are looked at.
                hinted.add(.all)
                while !isEnded {
                    for message in try session.messages(within: Self.slice) {
                        let hint = Hint(message)
                        if hint.node != node { hinted.add(hint.scopes) }
                    }
                }
            } catch {
                let rest = max(connector.rest, connector.configuration.reconnectPause.lowerBound)
                Thread.sleep(forTimeInterval: min(Double(rest.milliseconds) / 1000, 1))
            }
        }
    }
}
