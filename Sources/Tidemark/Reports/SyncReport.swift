public import TidemarkWire

/// What one ``SyncEngine/syncNow()`` did, in all scopes together and in each.
public struct SyncReport: Hashable, Sendable {
    /// Numbers that add up.
    public struct Counts: Hashable, Sendable {
        /// Operations that got a verdict.
        public var pushed = 0
        /// Changes that came.
        public var received = 0
        /// Changes that made a difference here.
        public var applied = 0
        /// Rows quarantined because this device's schema does not take them.
        public var quarantined = 0
        /// Operations that the server refused.
        public var rejected = 0
        /// Operations that met an edit which the app has to decide about.
        public var undecided = 0
        /// Requests made.
        public var roundTrips = 0
        /// Bytes of requests, as on the wire.
        public var bytesSent = 0
        /// Bytes of answers, as on the wire.
        public var bytesReceived = 0

        /// Nothing yet.
        public init() {}

        static func += (lhs: inout Counts, rhs: Counts) {
            lhs.pushed += rhs.pushed
            lhs.received += rhs.received
            lhs.applied += rhs.applied
            lhs.quarantined += rhs.quarantined
            lhs.rejected += rhs.rejected
            lhs.undecided += rhs.undecided
            lhs.roundTrips += rhs.roundTrips
            lhs.bytesSent += rhs.bytesSent
            lhs.bytesReceived += rhs.bytesReceived
        }
    }

    /// All scopes together.
    public var total = Counts()
    /// Each scope.
    public var scopes: [Scope: Counts] = [:]
    /// How long it took.
    public var duration: Duration = .zero

    /// Operations that got a verdict.
    public var pushed: Int { total.pushed }
    /// Changes that came.
    public var received: Int { total.received }
    /// Changes that made a difference here.
    public var applied: Int { total.applied }
    /// Rows quarantined because this device's schema does not take them.
    public var quarantined: Int { total.quarantined }
    /// Operations that the server refused.
    public var rejected: Int { total.rejected }
    /// Operations that met an edit which the app has to decide about.
    public var undecided: Int { total.undecided }
    /// Requests made.
    public var roundTrips: Int { total.roundTrips }
    /// Bytes of requests, as on the wire.
    public var bytesSent: Int { total.bytesSent }
    /// Bytes of answers, as on the wire.
    public var bytesReceived: Int { total.bytesReceived }
}
