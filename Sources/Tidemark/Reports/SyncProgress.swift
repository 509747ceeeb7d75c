/// How far syncing has come, for a progress bar: rows and edits, with totals where they are known.
public struct SyncProgress: Hashable, Sendable, CustomStringConvertible {
    /// One direction of syncing.
    public struct Part: Hashable, Sendable, CustomStringConvertible {
        /// The rows or edits that are done since work began after the last rest, or since the engine was made; a
        /// filling that resumes counts those of the runs before too.
        public var done: Int
        /// All rows or edits that there are to do; `nil` where the number is not known.
        public var total: Int?

        /// Makes a value, for previews and tests.
        public init(done: Int = 0, total: Int? = nil) {
            self.done = done
            self.total = total
        }

        /// From 0 to 1; `nil` where the total is not known. Nothing to do is all done.
        public var fraction: Double? {
            total.map { $0 > 0 ? min(1, Double(done) / Double($0)) : 1 }
        }

        /// Such as `200 of 1000`, or `40` where the total is not known.
        public var description: String { "\(done)" + (total.map { " of \($0)" } ?? "") }
    }

    /// Edits that the server has answered, of those and all that wait.
    public var sent: Part
    /// Rows that came. Their total is known while a scope is filled from a snapshot that the server has counted.
    public var received: Part
    /// The table whose rows come now, as far as it is known.
    public var entity: String?
    /// Whether anything is being worked on.
    public var isBusy: Bool

    /// Makes a value, for previews and tests.
    public init(sent: Part = Part(), received: Part = Part(), entity: String? = nil, isBusy: Bool = false) {
        self.sent = sent
        self.received = received
        self.entity = entity
        self.isBusy = isBusy
    }

    /// Such as `sent 200 of 1000, received 40`.
    public var description: String { "sent \(sent), received \(received)" }
}
