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
                // What has failed slowly says nothing about a server that another worker has reached meanwhile.
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
    func settle(_ mark: WriteMark) -> Bool? {
        let deadline = ContinuousClock.now + PostgresStore.Configuration.bounded(configuration.settlingTimeout)
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

/// A worker's line to the server: its session, made anew when it was lost.
final class Line {
    let connector: Connector
    private var kept: Session?

    init(_ connector: Connector) { self.connector = connector }

    var isConnected: Bool { kept != nil }

    /// A session that was there a moment ago.
    func session() throws -> Session {
        if let kept, kept.isAlive() { return kept }
        kept = nil
        let session = try connector.connect()
        kept = session
        return session
    }

    /// Lets go of a session that is lost.
    func check() { if kept?.isLost == true { kept = nil } }

    /// Reads in one snapshot; once more where the connection broke meanwhile.
    func read<Result>(_ body: (Session) throws -> Result) throws -> Result {
        try repeating { try $0.read(body) }
    }

    /// Writes in a transaction; again where it was undone by others.
    func write<Result>(_ body: (Session) throws -> Result) throws -> Result {
        try repeating { session in try finish(session.write { _, _ in try body(session) }) }
    }

    /// What a transaction came to, after asking about it where its commit was not answered.
    func finish<Result>(_ outcome: WriteOutcome<Result>) throws -> Result {
        switch outcome {
        case .committed(let result): return result
        case .undone(let error): throw error
        case .unknown(let mark, let result):
            check()
            switch connector.settle(mark) {
            case true?: return result
            case false?: throw PostgresError(.connection, "the connection was lost at the commit, which was not made")
            case nil: throw StoreUnavailable("PostgreSQL: nobody can say whether a commit was made", mayBeDone: true)
            }
        }
    }

    private static let attempts = 8

    /// Repeats what has failed by no fault of its own.
    func repeating<Result>(_ body: (Session) throws -> Result) throws -> Result {
        var attempt = 1
        while true {
            do { return try body(try session()) } catch let error as PostgresError {
                check()
                guard error.code.isWorthRepeating, attempt < Self.attempts else { throw error.told }
            } catch let error as AlreadyStored {
                // Perhaps in another scope, by a transaction that came in between: then another look sees it.
                guard attempt < Self.attempts else { throw error }
            }
            // Those who stood in each other's way should not meet again.
            Thread.sleep(forTimeInterval: Double.random(in: 0...0.01) * Double(attempt))
            attempt += 1
        }
    }
}

extension PostgresError {
    /// As the engine takes it: what passes by itself is unavailable.
    var told: any Error { code.mayPass ? StoreUnavailable(description) : self }
}
