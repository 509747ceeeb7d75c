public import TidemarkWire

/// A report of one ``SyncEngine/syncNow()``, for all scopes together and for each.
///
/// ``rejected`` is a part of ``pushed``. Of what was ``received``, ``applied`` made a difference to a table, and
/// ``quarantined`` is kept outside of it; what this device had already is in neither.
public struct SyncReport: Hashable, Sendable, CustomStringConvertible {
    /// Numbers that add up.
    public struct Counts: Hashable, Sendable, CustomStringConvertible {
        /// Operations that got a verdict, whichever it was.
        public var pushed: Int
        /// Changes that came: rows, and deletions.
        public var received: Int
        /// Changes that made a difference here.
        public var applied: Int
        /// Rows quarantined because this device's schema does not take them.
        public var quarantined: Int
        /// Operations that the server refused: a part of ``pushed``.
        public var rejected: Int
        /// Conflicts that no policy resolved: open ones, which wait for a decision, and edits and rows of this device
        /// that gave way to a deletion, or to the server's row at the first capture of their table.
        public var conflicts: Int
        /// Requests made.
        public var roundTrips: Int
        /// Bytes of requests' bodies, as on the wire.
        public var bytesSent: Int
        /// Bytes of answers' bodies, as on the wire.
        public var bytesReceived: Int

        /// Makes numbers, for previews and tests; without arguments, nothing yet.
        public init(
            pushed: Int = 0, received: Int = 0, applied: Int = 0, quarantined: Int = 0, rejected: Int = 0,
            conflicts: Int = 0, roundTrips: Int = 0, bytesSent: Int = 0, bytesReceived: Int = 0
        ) {
            self.pushed = pushed
            self.received = received
            self.applied = applied
            self.quarantined = quarantined
            self.rejected = rejected
            self.conflicts = conflicts
            self.roundTrips = roundTrips
            self.bytesSent = bytesSent
            self.bytesReceived = bytesReceived
        }

        /// A sentence for a log or a screen: `Sent 3 operations, applied 1 of 1 change, in 2 requests.`
        public var description: String { clause + "." }

        /// The sentence without its end.
        fileprivate var clause: String {
            let troubles = [
                rejected > 0 ? "\(rejected) rejected" : nil, quarantined > 0 ? "\(quarantined) quarantined" : nil,
                conflicts > 0 ? counted(conflicts, "conflict") : nil,
            ].compactMap { $0 }
            return "Sent \(counted(pushed, "operation")), applied \(applied) of \(counted(received, "change"))"
                + (troubles.isEmpty ? "" : ": " + troubles.joined(separator: ", "))
                + ", in \(counted(roundTrips, "request"))"
        }

        static func += (lhs: inout Counts, rhs: Counts) {
            lhs.pushed += rhs.pushed
            lhs.received += rhs.received
            lhs.applied += rhs.applied
            lhs.quarantined += rhs.quarantined
            lhs.rejected += rhs.rejected
            lhs.conflicts += rhs.conflicts
            lhs.roundTrips += rhs.roundTrips
            lhs.bytesSent += rhs.bytesSent
            lhs.bytesReceived += rhs.bytesReceived
        }
    }

    /// Each scope's numbers; the properties beside it are their sums.
    public var scopes: [Scope: Counts]
    /// How long it took.
    public var duration: Duration

    /// Makes a report, for previews and tests; without arguments, one of nothing.
    public init(scopes: [Scope: Counts] = [:], duration: Duration = .zero) {
        self.scopes = scopes
        self.duration = duration
    }

    /// Operations that got a verdict, whichever it was.
    public var pushed: Int { sum.pushed }
    /// Changes that came: rows, and deletions.
    public var received: Int { sum.received }
    /// Changes that made a difference here.
    public var applied: Int { sum.applied }
    /// Rows quarantined because this device's schema does not take them.
    public var quarantined: Int { sum.quarantined }
    /// Operations that the server refused: a part of ``pushed``.
    public var rejected: Int { sum.rejected }
    /// Conflicts that no policy resolved; see ``Counts/conflicts``.
    public var conflicts: Int { sum.conflicts }
    /// Requests made.
    public var roundTrips: Int { sum.roundTrips }
    /// Bytes of requests' bodies, as on the wire.
    public var bytesSent: Int { sum.bytesSent }
    /// Bytes of answers' bodies, as on the wire.
    public var bytesReceived: Int { sum.bytesReceived }

    /// A sentence for a log or a screen, without row data.
    public var description: String {
        "\(sum.clause) and \((duration / .milliseconds(1)).rounded() / 1000) s."
    }

    private var sum: Counts { scopes.values.reduce(into: Counts()) { $0 += $1 } }
}
