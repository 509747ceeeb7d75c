/// An error that PostgreSQL, or the way to it, has answered instead of a result.
///
/// An error that may pass by itself reaches the engine as `StoreUnavailable`; this is thrown for the rest, and by
/// ``PostgresStore/init(url:configuration:)``. It never holds row data, nor the password of an address.
public struct PostgresError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error, the same for all errors that are handled alike.
    public enum Code: Hashable, Sendable, CaseIterable {
        /// The address cannot be read.
        case address
        /// The server cannot be reached, or the connection to it was lost.
        case connection
        /// Two transactions stood in each other's way; this one was undone (class 40).
        case conflict
        /// A lock was not to be had in time (55P03).
        case locked
        /// A statement took too long (57014).
        case timeout
        /// The server takes no writes: a standby, most likely (25006).
        case readOnly
        /// No room: disk, memory, connections or locks (class 53, and 58 for the server's own system).
        case resources
        /// Something that was prepared is out of date or gone; a new connection helps (26000, 0A000).
        case stale
        /// The role may not do this (classes 28 and 42501).
        case permission
        /// The schema is not Tidemark's, or was made by a newer version.
        case schema
        /// A value that PostgreSQL cannot hold (classes 22 and 23).
        case data
        /// A limit of PostgreSQL's own (class 54): a row too wide for an index, a statement too deep.
        case limit
        /// Anything else.
        case other
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

    init(_ code: Code, sqlState: String = "", _ message: String) {
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
    var mayPass: Bool {
        switch self {
        case .connection, .conflict, .locked, .timeout, .readOnly, .resources, .stale: true
        case .address, .permission, .schema, .data, .limit, .other: false
        }
    }

    /// Whether the same goes well at once, more likely than not, in a new transaction.
    var isWorthRepeating: Bool {
        switch self {
        case .connection, .conflict, .readOnly, .stale: true
        case .address, .locked, .timeout, .resources, .permission, .schema, .data, .limit, .other: false
        }
    }

    /// Whether an operator's table refuses the row: the same row would be refused again.
    var isRefusal: Bool {
        switch self {
        case .data, .limit, .other, .permission, .schema: true
        case .address, .connection, .conflict, .locked, .timeout, .readOnly, .resources, .stale: false
        }
    }

    /// Whether the connection that said so is of no more use.
    var endsConnection: Bool {
        switch self {
        case .connection, .readOnly, .stale: true
        case .address, .conflict, .locked, .timeout, .resources, .permission, .schema, .data, .limit, .other: false
        }
    }
}
