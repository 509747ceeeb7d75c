/// Why a table cannot be attached, filled or detached.
public struct TableError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error, as a name that stays: compare it with the constants here, and treat others as your
    /// program treats an error that it does not know. A later version may add some.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name, such as `table_unknown`.
        public var rawValue: String

        /// Makes a code from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// The name.
        public var description: String { rawValue }

        /// There is no such table, or more than one goes by the name.
        public static let tableUnknown = Code("table_unknown")
        /// Triggers would not see all that is written to such a table.
        public static let tableUnsupported = Code("table_unsupported")
        /// The table has no primary key that can be a record's id.
        public static let keyUnsupported = Code("key_unsupported")
        /// There is no such column.
        public static let columnUnknown = Code("column_unknown")
        /// The plan does not say which columns travel.
        public static let columnsNotNamed = Code("columns_not_named")
        /// The values of a column cannot travel.
        public static let columnUnsupported = Code("column_unsupported")
        /// The role may not do what is needed.
        public static let notOwner = Code("not_owner")
        /// The table, or the entity, is attached already.
        public static let alreadyAttached = Code("already_attached")
        /// The log has records of the entity already.
        public static let entityInUse = Code("entity_in_use")
        /// The entity's or the scope's name cannot be one.
        public static let nameInvalid = Code("name_invalid")
        /// The table is not attached.
        public static let notAttached = Code("not_attached")

        /// All codes of this version, for documents and tests.
        public static let all: [Code] = [
            .tableUnknown, .tableUnsupported, .keyUnsupported, .columnUnknown, .columnsNotNamed, .columnUnsupported,
            .notOwner, .alreadyAttached, .entityInUse, .nameInvalid, .notAttached,
        ]
    }

    /// The kind of the error.
    public var code: Code
    /// The error's context.
    public var message: String
    /// The remedy, for people.
    public var hint: String

    /// The message.
    public var description: String { message }

    /// Makes an error, for tests.
    public init(_ code: Code, _ message: String, hint: String) {
        self.code = code
        self.message = message
        self.hint = hint
    }
}
