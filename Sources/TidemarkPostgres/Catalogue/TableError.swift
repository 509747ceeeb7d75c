/// Why a table cannot be attached, filled or detached.
public struct TableError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error.
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// There is no such table, or more than one goes by the name.
        case tableUnknown = "table_unknown"
        /// Triggers would not see all that is written to such a table.
        case tableUnsupported = "table_unsupported"
        /// The table has no primary key that can be a record's id.
        case keyUnsupported = "key_unsupported"
        /// There is no such column.
        case columnUnknown = "column_unknown"
        /// The plan does not say which columns travel.
        case columnsNotNamed = "columns_not_named"
        /// The values of a column cannot travel.
        case columnUnsupported = "column_unsupported"
        /// The role may not do what is needed.
        case notOwner = "not_owner"
        /// The table, or the entity, is attached already.
        case alreadyAttached = "already_attached"
        /// The log has records of the entity already.
        case entityInUse = "entity_in_use"
        /// The entity's or the scope's name cannot be one.
        case nameInvalid = "name_invalid"
        /// The table is not attached.
        case notAttached = "not_attached"
    }

    /// The kind of the error.
    public var code: Code
    /// The error's context.
    public var message: String
    /// The remedy, for people.
    public var hint: String

    /// The message.
    public var description: String { message }

    init(_ code: Code, _ message: String, hint: String) {
        self.code = code
        self.message = message
        self.hint = hint
    }
}
