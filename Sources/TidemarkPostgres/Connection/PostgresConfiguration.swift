extension PostgresStore {
    /// The settings of a host. Every node may have its own, but for the schema.
    public struct Configuration: Sendable {
        /// The schema that holds the tables, made where there is none: small letters, digits and underscores. No role
        /// should bear its name: PostgreSQL puts the tables that a role makes into a schema of the role's own name.
        /// With the default name, a store that an earlier build made in `tidemark` is used on.
        public var schema = newSchema
        /// New stores get the first name; earlier builds gave the second.
        static let newSchema = "tidemark_log", formerSchema = "tidemark"
        /// Into how many parts the tables of the log are divided by scope (`PARTITION BY HASH`) when the schema is
        /// made; 0: they are whole. A schema that is there stays as it was made.
        public var partitions = 0
        /// The limits of `partitions`. With more, the locks of a few nodes' connections, each on all parts of the
        /// tables that it touches, are more than a server takes as it is installed (`max_locks_per_transaction`).
        package static let partitionRange = 0...32
        /// Connections that write, at most. Each commits what arrived for its scopes together.
        public var writers = 6
        /// Connections that read and tidy, at most.
        public var readers = 6
        /// Writes that may wait; what comes on top is refused as unavailable.
        public var waitingWrites = 10_000
        /// Reads that may wait; what comes on top is refused as unavailable.
        public var waitingReads = 10_000
        /// How long the server may work on one statement (`statement_timeout`).
        public var statementTimeout: Duration = .seconds(30)
        /// How long a statement may wait for somebody else's lock (`lock_timeout`).
        public var lockTimeout: Duration = .seconds(10)
        /// The time after which the server ends a transaction of a node that says nothing any more
        /// (`idle_in_transaction_session_timeout`): it holds up other nodes in its scopes for so long.
        public var idleTimeout: Duration = .seconds(30)
        /// How long a node tries to find out whether a commit was made after its connection broke.
        public var outcomeTimeout: Duration = .seconds(10)
        /// The first and the longest pause between attempts to reach a server that is gone.
        public var reconnectPause: ClosedRange<Duration> = .milliseconds(50) ... .seconds(2)

        /// How often a node looks whether others have committed to scopes that somebody waits for: a nudge comes at the
        /// latest so long after a commit, whatever becomes of the hints that nodes send each other.
        public var lookInterval: Duration = .seconds(5)
        /// Changes within this time are told to the other nodes together.
        public var hintPause: Duration = .milliseconds(50)

        /// The defaults.
        public init() {}

        /// How long a server that says nothing at all is waited for: all its own limits have ended by then.
        var patience: Duration { Self.bounded(statementTimeout) + Self.bounded(lockTimeout) + .seconds(5) }

        /// The time within the bounds of PostgreSQL, which counts milliseconds; 0 stands for no limit.
        static func bounded(_ time: Duration) -> Duration { min(max(time, .zero), .milliseconds(Int64(Int32.max))) }

        /// Whether the schema's name can stand in a statement as it is.
        var hasPlainSchema: Bool {
            guard let first = schema.utf8.first, !(0x30...0x39).contains(first), schema.utf8.count <= 63 else {
                return false
            }
            return schema.utf8.allSatisfy {
                (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) || $0 == UInt8(ascii: "_")
            }
        }
    }
}
