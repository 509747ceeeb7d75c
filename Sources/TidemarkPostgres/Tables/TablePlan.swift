public import TidemarkServer

extension PostgresStore {
    /// What the operator declares of a table that is to be attached.
    public struct TablePlan: Hashable, Sendable {
        /// Where the table's rows belong.
        public enum Place: Hashable, Sendable {
            /// All to one scope.
            case scope(Scope)
            /// Each to the scope that a column names, behind a prefix.
            case column(String, prefix: String)
            /// As `column`; the column, a text that holds whole names, is made for it, and begins with this scope in
            /// all rows.
            case newColumn(String, initially: Scope?)
        }

        /// The table: `schema.name`, or a name in `public`.
        public var table: String
        /// The entity that its rows are records of.
        public var entity: String
        /// Where its rows belong.
        public var place: Place
        /// The columns that travel; `nil`: all.
        public var columns: [String]?
        /// Whether records of the entity that the log has and the table has not are deleted.
        public var tableWins = false

        /// Makes a plan.
        public init(table: String, entity: String, place: Place, columns: [String]? = nil) {
            self.table = table
            self.entity = entity
            self.place = place
            self.columns = columns
        }
    }

    /// A table that is attached.
    public struct TableStatus: Hashable, Sendable {
        /// Its schema and name, as they are.
        public var table: String
        /// The entity that its rows are records of.
        public var entity: String
        /// The column of its key.
        public var key: String
        /// The columns that travel, beside the key.
        public var columns: [String]
        /// The column that names a row's scope; `nil` where all rows are in one.
        public var scopeColumn: String?
        /// The scope of all rows, or what stands before the column's value.
        public var scope: String
        /// Whether the scope's column was made for it.
        public var addsColumn: Bool
        /// Whether all rows that were there before have been noted.
        public var isFilled: Bool
        /// Writes of other programs that are not in the log yet.
        public var waiting: Int
        /// Why this role cannot read the table, which keeps them waiting; `nil` where it can.
        public var problem: String?
    }

    /// How far the rows that were there before have been noted.
    public struct FillStep: Hashable, Sendable {
        /// Rows that were looked at in this step.
        public var rows: Int
        /// Of those, rows that are in no scope: their column is NULL or no scope's name.
        public var placeless: Int
        /// Whether it was the last step.
        public var isLast: Bool
    }
}
