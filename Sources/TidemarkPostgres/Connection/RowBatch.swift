/// A statement that writes one row, and one that writes many.
///
/// Both have the same places: one before the columns (the scope), the columns (arrays in the second), and others behind
/// them. Neither may look for rows that it writes itself.
struct RowForm: Hashable, Sendable {
    /// PostgreSQL's numbers of the types of columns.
    enum Column: Int32 { case flag = 16, bytes = 17, integer = 20 }

    let one: Statement
    let many: Statement
    let columns: [Column]
}

/// Rows that wait to be written by one statement.
struct RowBatch {
    /// The most that one statement writes, so that neither side has to keep much.
    private static let rowLimit = 250
    private static let byteLimit = 1 << 20

    let form: RowForm
    private let scope: Parameter
    private let rest: [Parameter]
    private var rows: [[Parameter]] = []
    private var bytes = 0

    init(_ form: RowForm, scope: Parameter, rest: [Parameter]) {
        (self.form, self.scope, self.rest) = (form, scope, rest)
    }

    /// Whether a row may go out with the others.
    func takes(scope: Parameter, rest: [Parameter]) -> Bool {
        rows.count < Self.rowLimit && bytes < Self.byteLimit && self.scope == scope && self.rest == rest
    }

    mutating func add(_ row: [Parameter]) {
        rows.append(row)
        for case .bytes(let value) in row { bytes += value.count }
    }

    var request: Request {
        if rows.count == 1 { return Request(form.one, [scope] + rows[0] + rest) }
        let arrays = form.columns.enumerated().map { index, type in
            Parameter.array(rows.map { $0[index] }, of: type.rawValue)
        }
        return Request(form.many, [scope] + arrays + rest)
    }
}
