/// An error that PostgreSQL, or the way to it, has answered instead of a result.
///
/// An error that may pass by itself reaches the engine as `StoreUnavailable`; this is thrown for the rest, and by
/// ``PostgresStore/init(url:configuration:)``. It never holds row data, nor the password of an address.
public struct PostgresError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error, the same for all errors that are handled alike, as a name that stays: compare it with the
    /// constants here, and treat others as errors that may not pass by themselves. A later version may add some.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name, such as `read_only`.
        public var rawValue: String

        /// Makes a code from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// The name.
        public var description: String { rawValue }

        /// The address cannot be read.
        public static let address = Code("address")
        /// The server cannot be reached, or the connection to it was lost.
        public static let connection = Code("connection")
        /// Two transactions stood in each other's way; this one was undone (class 40).
        public static let conflict = Code("conflict")
        /// A lock was not to be had in time (55P03).
        public static let locked = Code("locked")
        /// A statement took too long (57014).
        public static let timeout = Code("timeout")
        /// The server takes no writes: a standby, most likely (25006).
        public static let readOnly = Code("read_only")
        /// No room: disk, memory, connections or locks (class 53, and 58 for the server's own system).
        public static let resources = Code("resources")
        /// Something that was prepared is out of date or gone; a new connection helps (26000, 0A000).
        public static let stale = Code("stale")
        /// The role may not do this (classes 28 and 42501).
        public static let permission = Code("permission")
        /// The schema is not Tidemark's, or was made by a newer version.
        public static let schema = Code("schema")
        /// A value that PostgreSQL cannot hold (classes 22 and 23).
        public static let data = Code("data")
        /// A limit of PostgreSQL's own (class 54): a row too wide for an index, a statement too deep.
        public static let limit = Code("limit")
        /// Anything else.
        public static let other = Code("other")

        /// All codes of this version, for documents and tests.
        public static let all: [Code] = [
            .address, .connection, .conflict, .locked, .timeout, .readOnly, .resources, .stale, .permission, .schema,
            .data, .limit, .other,
        ]
    }

    /// The kind of the error.
    public var code: Code
    /// The five characters that PostgreSQL gave, empty where it gave none.
    public var sqlState: String
    /// The message, for the operator's log.
    public var message: String
    /// The constraint or the column that a row violates, where the server names one.
    var place: String?

    /// PostgreSQL's code and message.
    public var description: String {
        sqlState.isEmpty ? "PostgreSQL: \(message)" : "PostgreSQL error \(sqlState): \(message)"
    }

    /// Makes an error, for tests.
    public init(_ code: Code, sqlState: String = "", _ message: String) {
        self.code = code
        self.sqlState = sqlState
        self.message = message
    }

    /// - Parameter message: the first line of what the server says; left out where it may quote a value.
    init(sqlState: String, message: String) {
        let code = Code(sqlState: sqlState)
        self.init(
            code, sqlState: sqlState, code == .data ? "a value was refused that the server cannot hold" : message)
    }
}

extension PostgresError.Code {
    /// Sorts PostgreSQL's codes: single ones first, then whole classes.
    init(sqlState: String) {
        switch sqlState {
        case "55P03": self = .locked
        case "57014": self = .timeout
        case "25006": self = .readOnly
        case "26000", "0A000": self = .stale
        case "42501": self = .permission
        case "25P03": self = .connection
        default:
            switch sqlState.prefix(2) {
            case "08", "57": self = .connection
            case "40": self = .conflict
            case "53", "58": self = .resources
            case "28": self = .permission
            case "22", "23": self = .data
            case "54": self = .limit
            case "3D", "3F", "42": self = .schema
            default: self = .other
            }
        }
    }

    /// Whether the same may go well later, without anybody's doing or once the operator has seen to the server.
    var mayPass: Bool { Self.passing.contains(self) }

    private static let passing: Set<Self> = [
        .connection, .conflict, .locked, .timeout, .readOnly, .resources, .stale,
    ]

    /// Whether the same goes well at once, more likely than not, in a new transaction.
    var isWorthRepeating: Bool { Self.repeated.contains(self) }

    private static let repeated: Set<Self> = [.connection, .conflict, .readOnly, .stale]

    /// Whether an operator's table refuses the row: the same row would be refused again.
    var isRefusal: Bool { Self.refusals.contains(self) }

    private static let refusals: Set<Self> = [.data, .limit, .other, .permission, .schema]

    /// Whether the connection that said so is of no more use.
    var endsConnection: Bool { Self.ends.contains(self) }

    private static let ends: Set<Self> = [.connection, .readOnly, .stale]
}
