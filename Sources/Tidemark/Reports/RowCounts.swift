extension SyncStatus {
    /// Where the rows of a table stand (I13). Each row is one of four things, which add up to the table's rows; what
    /// waits or is kept without a row in the table is counted beside them. Nothing of it needs a scan of the table.
    public struct Rows: Hashable, Sendable {
        /// Rows as they are on the server, as far as this device knows.
        public var confirmed: Int
        /// Rows that were edited here and are on the way, by themselves: not sent yet, sent without a verdict, or not
        /// compared yet after a time in which nothing was captured.
        public var pending: Int
        /// Rows that are not sent while something stands in the way: the insert of a record that they refer to was
        /// refused, a conflict is open, or too much was written unseen (``SyncEngine/inferredEdits()``).
        public var blocked: Int
        /// Rows that are on this device only, since they cannot be put on the wire: their key is NULL or cannot be a
        /// record id, they hold text that is not UTF-8, or they are too large.
        public var unable: Int
        /// Rows that were deleted here; the delete is on the way or waits for a confirmation.
        public var deletes: Int
        /// Rows that are kept outside the table, since this device's schema does not take them as things stand.
        public var quarantined: Int

        /// Makes numbers, for previews and tests; without arguments, nothing counted yet.
        public init(
            confirmed: Int = 0, pending: Int = 0, blocked: Int = 0, unable: Int = 0, deletes: Int = 0,
            quarantined: Int = 0
        ) {
            self.confirmed = confirmed
            self.pending = pending
            self.blocked = blocked
            self.unable = unable
            self.deletes = deletes
            self.quarantined = quarantined
        }

        /// The rows that are in the table.
        public var total: Int { confirmed + pending + blocked + unable }

        /// Whether every row is confirmed, and no delete waits.
        var isSettled: Bool { total == confirmed && deletes == 0 }

        static func += (lhs: inout Rows, rhs: Rows) {
            lhs.confirmed += rhs.confirmed
            lhs.pending += rhs.pending
            lhs.blocked += rhs.blocked
            lhs.unable += rhs.unable
            lhs.deletes += rhs.deletes
            lhs.quarantined += rhs.quarantined
        }
    }
}
