import Foundation
import TidemarkServer

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

    /// Returns or throws the outcome of a transaction, after asking about it where its commit was not answered.
    func finish<Result>(_ outcome: WriteOutcome<Result>) throws -> Result {
        switch outcome {
        case .committed(let result): return result
        case .undone(let error): throw error
        case .unknown(let mark, let result):
            check()
            switch connector.wasCommitted(mark) {
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
            // Transactions that stood in each other's way should not meet again.
            Thread.sleep(forTimeInterval: Double.random(in: 0...0.01) * Double(attempt))
            attempt += 1
        }
    }
}

extension PostgresError {
    /// The error as the engine takes it: one that may pass by itself is `StoreUnavailable`.
    var told: any Error { code.mayPass ? StoreUnavailable(description) : self }
}
