import TidemarkWire

extension SyncStatus {
    /// Where the rows of a table stand (I13). Each row is one of four things, which add up to the table's rows; deletes
    /// and quarantined rows, which have no row in the table, are counted beside them. Nothing of it needs a scan of the
    /// table.
    public struct Rows: Hashable, Sendable {
        /// Rows as they are on the server, as far as this device knows.
        public var confirmed: Int
        /// Rows with edits that go by themselves: pending, sent without a verdict, behind a record that goes first, or
        /// inferred and not compared with the server yet.
        public var outgoing: Int
        /// Rows with edits that do not go before something is decided or changes: the insert of a record that they
        /// refer to was refused, a conflict is open, or too many edits were inferred
        /// (``SyncEngine/inferredEdits()``).
        public var stalled: Int
        /// Rows that are on this device only, since they cannot be put on the wire: their key is NULL or cannot be a
        /// record id, they hold text that is not UTF-8, or they are too large.
        public var unable: Int
        /// Rows that were deleted here; the delete is on the way or waits for a confirmation.
        public var deletes: Int
        /// Rows that are kept outside the table, since this device's schema does not take them as things stand.
        public var quarantined: Int

        /// Makes numbers, for previews and tests; without arguments, nothing counted yet.
        public init(
            confirmed: Int = 0, outgoing: Int = 0, stalled: Int = 0, unable: Int = 0, deletes: Int = 0,
            quarantined: Int = 0
        ) {
            self.confirmed = confirmed
            self.outgoing = outgoing
            self.stalled = stalled
            self.unable = unable
            self.deletes = deletes
            self.quarantined = quarantined
        }

        /// The rows that are in the table.
        public var total: Int { confirmed + outgoing + stalled + unable }

        /// Whether every row is confirmed, and no delete waits.
        var isConfirmed: Bool { total == confirmed && deletes == 0 }

        static func += (lhs: inout Rows, rhs: Rows) {
            lhs.confirmed += rhs.confirmed
            lhs.outgoing += rhs.outgoing
            lhs.stalled += rhs.stalled
            lhs.unable += rhs.unable
            lhs.deletes += rhs.deletes
            lhs.quarantined += rhs.quarantined
        }
    }
}

extension SyncStatus.Rows: CustomStringConvertible {
    /// A sentence for a log or a screen: `5 rows: 3 confirmed, 2 outgoing; 1 delete, 2 quarantined.`
    public var description: String {
        let parts = [
            (confirmed, "confirmed"), (outgoing, "outgoing"), (stalled, "stalled"), (unable, "unable to travel"),
        ].filter { $0.0 != 0 }.map { "\($0.0) \($0.1)" }
        let others = [
            deletes != 0 ? counted(deletes, "delete") : nil, quarantined != 0 ? "\(quarantined) quarantined" : nil,
        ].compactMap(\.self)
        return counted(total, "row") + (parts.isEmpty ? "" : ": " + parts.joined(separator: ", "))
            + (others.isEmpty ? "" : "; " + others.joined(separator: ", ")) + "."
    }
}
