public import TidemarkServer
import TidemarkWire

extension PostgresStore {
    /// The operator's declaration of a table that is to be attached.
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

            /// The scope that is named as it is.
            var scope: Scope? {
                switch self {
                case .scope(let scope): scope
                case .newColumn(_, let scope): scope
                case .column: nil
                }
            }
        }

        /// Which columns travel. The key always does, and the scope's column too.
        public enum Columns: Hashable, Sendable {
            /// All of them, to the devices and from them.
            case all
            /// `read`: to the devices alone. `write`: to the devices and from them.
            case named(read: [String], write: [String])

            /// Returns the named columns that the table has.
            public func limited(to columns: [String]) -> Columns {
                switch self {
                case .all: .all
                case .named(let read, let write):
                    .named(read: read.filter(columns.contains), write: write.filter(columns.contains))
                }
            }

            var names: [String]? {
                switch self {
                case .all: nil
                case .named(let read, let write): read.filter { !write.contains($0) } + write
                }
            }

            func isReadOnly(_ column: String) -> Bool {
                switch self {
                case .all: false
                case .named(_, let write): !write.contains(column)
                }
            }
        }

        /// The table: `schema.name`, or a name in `public`.
        public var table: String
        /// The entity that its rows are records of.
        public var entity: String
        /// Where its rows belong.
        public var place: Place
        /// The columns that travel.
        public var columns: Columns
        /// The sub-scope of each scope that holds the rows, as the entity is declared; `nil`: the scope itself.
        public var subscope: String?
        /// Whether records of the entity that the log has and the table has not are deleted.
        public var tableWins = false

        /// Makes a plan.
        public init(table: String, entity: String, place: Place, columns: Columns) {
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
        /// The columns of its key, with commas between.
        public var key: String
        /// The columns that travel, beside the key.
        public var columns: [String]
        /// Of those, the ones that devices do not write.
        public var readOnly: [String]
        /// Columns that travel and whose names look like a secret, and columns that devices write and whose names look
        /// like a right: `password_hash`, `is_admin`.
        public var sensitive: [String]
        /// The column that names a row's scope; `nil` where all rows are in one.
        public var scopeColumn: String?
        /// The scope of all rows, or what stands before the column's value.
        public var scope: String
        /// Columns of exact numbers, which a device has to declare TEXT: as a NUMERIC or REAL it would hold another
        /// value, and differ from the server for ever.
        public var exact: [String]
        /// Whether the key is a number that two devices may both make up.
        public var hasNumberKey: Bool
        /// The table that devices make for it, as a statement of SQLite.
        public var deviceTable: String
        /// Whether the scope's column was made for it.
        public var addsColumn: Bool
        /// Whether all rows that were there before have been noted.
        public var isFilled: Bool
        /// Writes of other programs that are noted and not in the log yet.
        public var notes: Int
        /// Why this role cannot read the table, so that the notes stay; `nil` where it can.
        public var problem: String?

        /// Makes a status, for tests.
        public init(
            table: String, entity: String, key: String, columns: [String] = [], readOnly: [String] = [],
            sensitive: [String] = [], scopeColumn: String? = nil, scope: String, exact: [String] = [],
            hasNumberKey: Bool = false, deviceTable: String = "", addsColumn: Bool = false, isFilled: Bool = true,
            notes: Int = 0, problem: String? = nil
        ) {
            self.table = table
            self.entity = entity
            self.key = key
            self.columns = columns
            self.readOnly = readOnly
            self.sensitive = sensitive
            self.scopeColumn = scopeColumn
            self.scope = scope
            self.exact = exact
            self.hasNumberKey = hasNumberKey
            self.deviceTable = deviceTable
            self.addsColumn = addsColumn
            self.isFilled = isFilled
            self.notes = notes
            self.problem = problem
        }
    }

    /// A table that could be attached.
    public struct FoundTable: Hashable, Sendable {
        /// Its schema and name, as they are.
        public var table: String
        /// Its name alone.
        public var name: String
        /// Its columns.
        public var columns: [String]

        /// Makes a table from its parts, for tests.
        public init(table: String, name: String, columns: [String]) {
            self.table = table
            self.name = name
            self.columns = columns
        }
    }

    /// How far the rows that were there before have been noted.
    public struct FillStep: Hashable, Sendable {
        /// Rows that were looked at in this step.
        public var rows: Int
        /// Of those, rows that are in no scope: their column is NULL or no scope's name.
        public var placeless: Int
        /// Whether it was the last step.
        public var isLast: Bool

        /// Makes a step from its parts, for tests.
        public init(rows: Int, placeless: Int = 0, isLast: Bool) {
            self.rows = rows
            self.placeless = placeless
            self.isLast = isLast
        }
    }
}

extension PostgresStore.TableStatus: CustomStringConvertible {
    /// A sentence for a log: `public.todo is attached as todo: filled, 3 notes.`
    public var description: String {
        let parts = [isFilled ? "filled" : "not filled yet", counted(notes, "note"), problem]
        return "\(table) is attached as \(entity): \(parts.compactMap(\.self).joined(separator: ", ")).".printable
    }
}

extension PostgresStore.FillStep: CustomStringConvertible {
    /// A sentence for a log: `Looked at 20 rows, 2 of them in no scope; there are more.`
    public var description: String {
        "Looked at \(counted(rows, "row"))" + (placeless > 0 ? ", \(placeless) of them in no scope" : "")
            + (isLast ? "; that is all." : "; there are more.")
    }
}
