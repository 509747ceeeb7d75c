public import TidemarkWire

/// The result of a comparison of this device's tables with the server's records (F2).
public struct VerifyReport: Hashable, Sendable, CustomStringConvertible {
    /// Something that could not be compared, and why.
    public struct Gap: Hashable, Sendable {
        /// Why it could not be compared; a later version may add reasons.
        public struct Reason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
            /// The name, such as `push_only`.
            public var rawValue: String

            /// Makes a reason from its name.
            public init(rawValue: String) { self.rawValue = rawValue }

            /// The name.
            public var description: String { rawValue }

            /// Events have no present state.
            public static let events = Reason(rawValue: "events")
            /// A table that is only pushed is not handed out, so that each device holds its own part.
            public static let pushOnly = Reason(rawValue: "push_only")
            /// Some records lack the column on the server, and its default is computed on each device.
            public static let computedDefault = Reason(rawValue: "computed_default")
            /// The server has more fields of this entity than it tells apart; only the existence of its records was
            /// compared.
            public static let tooManyFields = Reason(rawValue: "too_many_fields")

            /// All reasons of this version, for documents and tests.
            public static let all: [Reason] = [.events, .pushOnly, .computedDefault, .tooManyFields]
        }

        /// The column; `nil`: the whole table.
        public var column: String?
        /// Why it could not be compared.
        public var reason: Reason

        /// Makes a gap, for previews and tests.
        public init(column: String? = nil, reason: Reason) {
            self.column = column
            self.reason = reason
        }
    }

    /// A table, as far as its rows belong to one scope.
    public struct Table: Hashable, Sendable {
        /// Rows that were compared: the server's, as this device knows them beneath its own edits.
        public var records: Int
        /// Records that differed from the server's, were missing here, or were here alone.
        public var differing: Int
        /// Differing records that are as on the server now.
        public var repaired: Int
        /// The ids of differing records, the first ``VerifyReport/idLimit`` of them.
        public var differingIDs: [String] = []
        /// Rows that the server did not know, and that were sent instead of being taken away; the first
        /// ``VerifyReport/idLimit`` of them.
        public var unsentIDs: [String] = []
        /// Why records still differ after a repair, by their ids; the first ``VerifyReport/idLimit`` of them.
        public var unrepaired: [String: String] = [:]
        /// More records differ than one comparison looks for; the next one goes on.
        public var isCutShort = false
        /// Parts that could not be compared.
        public var gaps: [Gap]

        /// Makes a table's part, for previews and tests; without arguments, nothing compared yet.
        public init(records: Int = 0, differing: Int = 0, repaired: Int = 0, gaps: [Gap] = []) {
            self.records = records
            self.differing = differing
            self.repaired = repaired
            self.gaps = gaps
        }

        fileprivate init(sumOf tables: [Table]) {
            self.init(gaps: tables.flatMap(\.gaps))
            for table in tables {
                records += table.records
                differing += table.differing
                repaired += table.repaired
            }
            isCutShort = tables.contains(where: \.isCutShort)
        }

        mutating func noteUnsent(_ id: String) {
            if unsentIDs.count < VerifyReport.idLimit, !unsentIDs.contains(id) { unsentIDs.append(id) }
        }

        mutating func noteUnrepaired(_ id: String, _ reason: String) {
            if unrepaired.count < VerifyReport.idLimit { unrepaired[id] = reason }
        }
    }

    /// The part of one scope.
    public struct Part: Hashable, Sendable {
        /// The version as of which was compared.
        public var version: Version
        /// Each table that may hold rows of the scope.
        public var tables: [String: Table]

        /// Makes a scope's part, for previews and tests; without arguments, nothing compared yet.
        public init(version: Version = 0, tables: [String: Table] = [:]) {
            self.version = version
            self.tables = tables
        }
    }

    /// Ids that are listed for one table, at most.
    public static let idLimit = 1000

    /// Each scope.
    public var scopes: [Scope: Part]
    /// Requests made, syncing included.
    public var roundTrips = 0
    /// Bytes of requests' bodies, as on the wire.
    public var bytesSent = 0
    /// Bytes of answers, as on the wire.
    public var bytesReceived = 0
    /// How long it took.
    public var duration: Duration

    /// Makes a report, for previews and tests; without arguments, nothing compared yet.
    public init(scopes: [Scope: Part] = [:], duration: Duration = .zero) {
        self.scopes = scopes
        self.duration = duration
    }

    /// Rows that were compared.
    public var records: Int { tables.reduce(0) { $0 + $1.records } }
    /// Records that differed.
    public var differing: Int { tables.reduce(0) { $0 + $1.differing } }
    /// Records that differed and are as on the server now.
    public var repaired: Int { tables.reduce(0) { $0 + $1.repaired } }
    /// Whether everything that can be compared is as on the server now.
    public var isClean: Bool { tables.allSatisfy { $0.differing == $0.repaired && !$0.isCutShort } }

    /// A sentence for a log or a screen, without row data.
    public var description: String { Table(sumOf: tables).description }

    private var tables: [Table] { scopes.values.flatMap { $0.tables.values } }
}

extension VerifyReport.Part: CustomStringConvertible {
    /// A sentence for a log or a screen, without row data.
    public var description: String {
        "As of version \(version): \(VerifyReport.Table(sumOf: Array(tables.values)))"
    }
}

extension VerifyReport.Gap: CustomStringConvertible {
    /// A sentence for a log or a screen: `Column size was not compared: computed_default.`
    public var description: String { (column.map { "Column \($0)" } ?? "The table") + " was not compared: \(reason)." }
}

extension VerifyReport.Table: CustomStringConvertible {
    /// A sentence for a log or a screen, without row data.
    public var description: String {
        let found = differing == 0 ? "all as on the server" : "\(differing) differed, \(repaired) repaired"
        return "Compared \(counted(records, "row")): \(found)" + (isCutShort ? ", and more differ" : "")
            + (gaps.isEmpty ? "" : "; \(gaps.count) could not be compared") + "."
    }
}
