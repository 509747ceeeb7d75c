import TidemarkServer
import TidemarkWire

extension RowRefusal {
    /// - Parameter flaw: what is wrong with the value, as a sentence; `nil` where its kind is.
    init(valueOf column: AttachedColumn, _ flaw: String?) {
        self.init(
            code: RejectionCode.valueRefused, detail: flaw ?? "The column \(column.name) cannot hold such a value.",
            hint: "It is of the type \(column.type).")
    }

    /// Refuses a row whose reference is missing, or is not the author's to see: which of the two is nobody's to know.
    init(reference name: String?) {
        self.init(
            code: RejectionCode.referenceViolated,
            detail: "The row refers to one that is missing, or is needed\(Self.place(name)).",
            hint: "Send what it refers to first; delete what refers to it first.")
    }

    /// A value that has to be the only one of its kind is there already, in whatever scope.
    init(notUnique name: String?) {
        self.init(
            code: RejectionCode.notUnique, detail: "Another row has the value already\(Self.place(name)).",
            hint: "Choose another value.")
    }

    private static func place(_ name: String?) -> String { name.map { " (\($0))" } ?? "" }

    /// Columns that are named at most where one of them is at fault.
    private static let namedColumns = 5

    /// Makes a refusal of PostgreSQL's error about a row, without the row.
    ///
    /// - Parameter columns: the columns that were written, of which one may hold a value that it cannot.
    init(_ error: PostgresError, _ references: [TableReference] = [], columns: [AttachedColumn] = []) {
        if let index = PostgresScopeWriter.ReferenceChecks.failed(error), references.indices.contains(index) {
            self.init(reference: references[index].name)
            return
        }
        switch error.sqlState {
        case "23503": self.init(reference: error.place)
        case "23505", "23P01": self.init(notUnique: error.place)
        case "23514", "44000":
            self.init(
                code: RejectionCode.checkFailed, detail: "A check of the table fails\(Self.place(error.place)).",
                hint: "Correct the values that it looks at.")
        case "23502":
            self.init(
                code: RejectionCode.valueMissing, detail: "A column needs a value\(Self.place(error.place)).",
                hint: "Give it one.")
        case "P0001":
            self.init(
                code: RejectionCode.tableRefused, detail: error.message, hint: "A trigger of the table says so.")
        case "54000":
            self.init(
                code: RejectionCode.valueRefused, detail: "A value is longer than an index of the table takes.",
                hint: "Shorten the values that are looked up by.")
        case let state where state.hasPrefix("22"):
            let names = columns.prefix(Self.namedColumns).map { "\($0.name) (\($0.type))" }
            let among = names.isEmpty ? "" : ": it is among \(names.joined(separator: ", "))"
            self.init(
                code: RejectionCode.valueRefused, detail: "A column cannot hold its value\(among).",
                hint: "Check the lengths, numbers and spellings of the values.")
        default:
            let reason = error.sqlState.isEmpty ? error.message : error.sqlState
            self.init(
                code: RejectionCode.tableRefused, detail: "The server's table does not take the row (\(reason)).",
                hint: "Tell the operator of the server; the edit can be tried again once the table is mended.")
        }
    }
}
