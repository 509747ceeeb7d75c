public import Foundation
import TidemarkCore
import TidemarkWire

/// What a file's syncing has cost and where it has failed, summed up over the file's life (A20): the file keeps the
/// sums, which grow with every answer that is taken in. Where a sum begins anew, ``since`` does too.
public struct SyncMeasures: Hashable, Sendable, Codable {
    /// What went over the wire of one entity.
    ///
    /// Bytes are those of the operations and changes in JSON: a body is compressed as a whole, so that no entity has a
    /// part of its own in ``SyncMeasures/bytesSent`` and ``SyncMeasures/bytesReceived``.
    public struct Traffic: Hashable, Sendable, Codable {
        /// Operations that were sent, each time that a request with it was answered.
        public var sent = 0
        /// The bytes of those operations.
        public var bytesSent = 0
        /// Changes that were taken in: rows, and deletions.
        public var received = 0
        /// The bytes of those changes.
        public var bytesReceived = 0

        /// Makes numbers, for previews and tests; without arguments, nothing yet.
        public init(sent: Int = 0, bytesSent: Int = 0, received: Int = 0, bytesReceived: Int = 0) {
            self.sent = sent
            self.bytesSent = bytesSent
            self.received = received
            self.bytesReceived = bytesReceived
        }
    }

    /// A stage of an exchange in which it may fail; a later version may add stages.
    public struct Stage: RawRepresentable, Hashable, Sendable, Codable, CodingKeyRepresentable, CustomStringConvertible
    {
        /// The name, such as `apply`.
        public var rawValue: String

        /// Makes a stage from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The name.
        public var description: String { rawValue }

        /// Reading the schema, and sealing edits, before anything leaves.
        public static let seal = Stage(rawValue: "seal")
        /// From the request to an answer that can be used: the network, the server, a refusal.
        public static let request = Stage(rawValue: "request")
        /// Writing what an answer brought, within its transaction.
        public static let apply = Stage(rawValue: "apply")
        /// The commit of that transaction: a full disk, for example.
        public static let commit = Stage(rawValue: "commit")
        /// What follows a commit, such as the app's decisions about conflicts.
        public static let finalize = Stage(rawValue: "finalize")

        /// All stages of this version, in their order.
        public static let all: [Stage] = [.seal, .request, .apply, .commit, .finalize]
    }

    /// How long first syncs took until there was something to show: from the first request for a scope that was never
    /// here to its first rows, committed, or to the word that it has none. An engine that is made anew meanwhile begins
    /// to count anew.
    public struct FirstData: Hashable, Sendable, Codable {
        /// Scopes that have come for the first time.
        public var scopes = 0
        /// The sum of their times.
        public var total = Duration.zero
        /// The longest of them.
        public var longest = Duration.zero

        /// Makes numbers, for previews and tests; without arguments, nothing yet.
        public init(scopes: Int = 0, total: Duration = .zero, longest: Duration = .zero) {
            self.scopes = scopes
            self.total = total
            self.longest = longest
        }

        private enum CodingKeys: String, CodingKey { case scopes, milliseconds, longest }

        /// Reads what ``encode(to:)`` has written.
        ///
        /// - Throws: `DecodingError` where it is something else.
        public init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            scopes = try values.decode(Int.self, forKey: .scopes)
            total = .milliseconds(try values.decode(Int64.self, forKey: .milliseconds))
            longest = .milliseconds(try values.decode(Int64.self, forKey: .longest))
        }

        /// Writes times as whole milliseconds.
        ///
        /// - Throws: errors of the encoder.
        public func encode(to encoder: any Encoder) throws {
            var values = encoder.container(keyedBy: CodingKeys.self)
            try values.encode(scopes, forKey: .scopes)
            try values.encode(total.milliseconds, forKey: .milliseconds)
            try values.encode(longest.milliseconds, forKey: .longest)
        }
    }

    /// When the sums began; `nil` where nothing was measured yet.
    public var since: Date?
    /// Requests that were answered, whatever for.
    public var requests = 0
    /// Bytes of requests' bodies, as on the wire.
    public var bytesSent = 0
    /// Bytes of answers' bodies, as on the wire.
    public var bytesReceived = 0
    /// The traffic of each entity, by its table's name. The empty name stands for all entities that this file has no
    /// table for.
    public var entities: [String: Traffic] = [:]
    /// Changes that came.
    public var received = 0
    /// Changes that made a difference here.
    public var applied = 0
    /// Exchanges that failed, by the stage. An app that is cancelled or suspended has not failed.
    public var failures: [Stage: Int] = [:]
    /// The time to the first useful data.
    public var firstData = FirstData()

    /// Makes numbers, for previews and tests; set those that they are to show.
    public init() {}

    /// How many changes come for each that makes a difference here; `nil` where none has. 1 is best: a device's own
    /// edits that come back, and rows that come twice, make it grow.
    public var density: Double? { applied > 0 ? Double(received) / Double(applied) : nil }

    /// Adds other numbers to these.
    public static func += (lhs: inout SyncMeasures, rhs: SyncMeasures) {
        lhs.since = [lhs.since, rhs.since].compactMap { $0 }.min()
        lhs.requests += rhs.requests
        lhs.bytesSent += rhs.bytesSent
        lhs.bytesReceived += rhs.bytesReceived
        lhs.add(rhs.entities)
        lhs.received += rhs.received
        lhs.applied += rhs.applied
        lhs.failures.merge(rhs.failures, uniquingKeysWith: +)
        lhs.firstData += rhs.firstData
    }
}

extension SyncMeasures.FirstData {
    static func += (lhs: inout Self, rhs: Self) {
        lhs.scopes += rhs.scopes
        lhs.total += rhs.total
        lhs.longest = max(lhs.longest, rhs.longest)
    }
}

extension SyncMeasures {
    mutating func add(_ traffic: [String: Traffic]) {
        for (name, part) in traffic { entities[name, default: Traffic()] += part }
    }
}

extension SyncMeasures.Traffic {
    static func += (lhs: inout Self, rhs: Self) {
        lhs.sent += rhs.sent
        lhs.bytesSent += rhs.bytesSent
        lhs.received += rhs.received
        lhs.bytesReceived += rhs.bytesReceived
    }
}

extension SyncMeasures: CustomStringConvertible {
    /// A sentence for a log, without row data: the traffic, what it was good for, and how often it failed.
    public var description: String {
        guard let since else { return "Nothing was measured yet." }
        let failed = failures.values.reduce(0, +)
        return "Since \(since.formatted(.iso8601)) \(counted(requests, "request")), \(bytesSent) bytes sent, "
            + "\(bytesReceived) bytes received; \(applied) of \(counted(received, "change")) made a difference"
            + (failed > 0 ? "; \(counted(failed, "exchange")) failed." : ".")
    }
}
