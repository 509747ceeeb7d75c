import Foundation
import TidemarkServer

/// Makes sessions, and leaves a server that is gone in peace for a while between attempts.
final class Connector: @unchecked Sendable {  // because what changes is only touched under `lock`
    let address: ServerAddress
    let configuration: PostgresStore.Configuration
    private let lock = NSLock()
    private var failures = 0
    private var pausedUntil: ContinuousClock.Instant?
    private var lastSuccess: ContinuousClock.Instant?
    private var lastFailure = ""

    init(_ address: ServerAddress, _ configuration: PostgresStore.Configuration) {
        self.address = address
        self.configuration = configuration
    }

    /// Makes a session; blocks the thread.
    ///
    /// - Throws: `StoreUnavailable` where the server does not answer, or did not a moment ago.
    func connect() throws -> Session {
        try lock.withLock {
            if let pausedUntil, pausedUntil > .now { throw StoreUnavailable(lastFailure) }
        }
        let start = ContinuousClock.now
        do {
            let session = try Session(to: address, configuration)
            lock.withLock { (failures, pausedUntil, lastSuccess) = (0, nil, .now) }
            return session
        } catch {
            lock.withLock {
                // A slow failure says nothing about a server that another worker has reached meanwhile.
                if let lastSuccess, lastSuccess > start { return }
                failures += 1
                pausedUntil = .now + pause
                lastFailure = error.description
            }
            throw StoreUnavailable(error.description)
        }
    }

    /// How long not to try; with a part by chance, so that not all nodes come back at once.
    private var pause: Duration {
        let (first, longest) = (configuration.reconnectPause.lowerBound, configuration.reconnectPause.upperBound)
        let grown = first * (1 << min(failures - 1, 20))
        return min(grown, longest) * Double.random(in: 0.5...1)
    }

    /// How long until it may be tried again.
    var rest: Duration { lock.withLock { max(.zero, (pausedUntil ?? .now) - .now) } }

    /// Finds out what became of a commit that was not answered; `nil` where nobody can say, or could in time.
    func wasCommitted(_ mark: WriteMark) -> Bool? {
        let deadline = ContinuousClock.now + PostgresStore.Configuration.bounded(configuration.outcomeTimeout)
        while ContinuousClock.now < deadline {
            if let outcome = try? outcome(of: mark) {
                switch outcome {
                case .committed: return true
                case .undone: return false
                case .unknown: return nil
                }
            }
            Thread.sleep(forTimeInterval: 0.05)
        }
        return nil
    }

    /// Asks on a connection of its own, which gives up soon: it is asked again.
    private func outcome(of mark: WriteMark) throws -> WriteMark.Outcome {
        var configuration = configuration
        configuration.lockTimeout = min(configuration.lockTimeout, .milliseconds(900))
        return try mark.outcome(Session(to: address, configuration, patience: .seconds(1)))
    }
}
