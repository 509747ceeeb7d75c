public import TidemarkWire

extension SyncedTable {
    /// Which scope a table's rows belong to.
    public struct ScopeRule: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case constant(Scope)
            case column(String, prefix: String)
        }

        let kind: Kind

        /// All rows belong to this scope.
        public static func constant(_ scope: Scope) -> ScopeRule { ScopeRule(kind: .constant(scope)) }

        /// Each row belongs to the scope that its column names: `workspace_id = 123` with the prefix `workspace:` is
        /// in `workspace:123`. The column holds text or integers, and travels with the row like any other.
        ///
        /// Writing another value moves the row. A row whose value makes no scope's name stays on this device, with a
        /// reason among ``SyncEngine/rejectedOperations()``; one whose scope the engine does not follow waits until
        /// it does.
        public static func column(_ name: String, prefix: String = "") -> ScopeRule {
            ScopeRule(kind: .column(name, prefix: prefix))
        }

        /// Whether rows of the scope may stand in a table with this rule.
        package func mayHold(_ scope: Scope) -> Bool {
            switch kind {
            case .constant(let constant): constant == scope
            case .column(_, let prefix): scope.name.utf8.count > prefix.utf8.count && scope.name.hasPrefix(prefix)
            }
        }

        /// The rule as the file keeps it, so that a later change of it is noticed.
        var description: String {
            switch kind {
            case .constant(let scope): "constant \(scope.name)"
            case .column(let name, let prefix): "column \(prefix) \(name)"
            }
        }

        init?(_ description: String) {
            let parts = description.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            switch (parts.first, parts.count) {
            case ("constant", 2):
                guard let scope = Scope(String(parts[1])) else { return nil }
                kind = .constant(scope)
            case ("column", 3): kind = .column(String(parts[2]), prefix: String(parts[1]))
            default: return nil
            }
        }

        private init(kind: Kind) { self.kind = kind }
    }
}

// MARK: - Rows

extension TableShape {
    /// Whether the rows of this table are spread over scopes by a column.
    var isScopedByColumn: Bool {
        switch rule.kind {
        case .constant: false
        case .column: true
        }
    }

    /// The column that names the scope, where it is one of the row's data.
    var scopeIndex: Int? {
        switch rule.kind {
        case .constant: nil
        case .column(let name, _): dataIndex(name)
        }
    }

    /// The scope that a row is in; `nil` where its value makes no scope's name, so that it cannot travel.
    func scope(ofKey key: [Cell], _ cells: [Cell]) -> Scope? {
        switch rule.kind {
        case .constant(let scope): return scope
        case .column(let name, let prefix):
            let cell = zip(self.key + data, key + cells).first { $0.0.name == name }?.1
            switch cell {
            case .text(let bytes) where !bytes.isEmpty: return Scope(prefix + String(decoding: bytes, as: UTF8.self))
            case .integer(let value): return Scope(prefix + String(value))
            case .null, .text, .real, .blob, nil: return nil
            }
        }
    }

    /// SQL for the name of a row's scope, where `row` is the table, an alias, `OLD` or `NEW`; the empty text where its
    /// value makes none, and NULL in a table whose scope is constant.
    func scopeSQL(_ row: String) -> String {
        guard case .column(let name, let prefix) = rule.kind else { return "NULL" }
        let value = "\(row).\(quoted(name))"
        let made = "\(literal(prefix)) || \(value)"
        // Text that holds NUL ends there for length() and GLOB, but not as a BLOB.
        return """
            CASE WHEN typeof(\(value)) IN ('text', 'integer') \
            AND length(CAST(\(made) AS BLOB)) BETWEEN \(prefix.utf8.count + 1) AND 128 \
            AND length(\(value)) = length(CAST(\(value) AS BLOB)) AND \(made) NOT GLOB '*[^-A-Za-z0-9._:@]*' \
            THEN \(made) ELSE '' END
            """
    }

    /// What the column holds in a row of the scope, as text.
    func placeText(of scope: Scope) -> String {
        guard case .column(_, let prefix) = rule.kind else { return "" }
        return String(scope.name.dropFirst(prefix.count))
    }

    /// What the column holds in a row of the scope, in the column's own type.
    func placeCell(of scope: Scope) -> Cell {
        let text = placeText(of: scope)
        let number = scopeIndex.flatMap { data[$0].affinity == .text ? nil : Int64(text) }
        guard let number, String(number) == text else { return .text(Array(text.utf8)) }
        return .integer(number)
    }

    /// SQL for whether a row is in a scope; an index on the column serves it.
    func isInSQL(_ scope: Scope, _ row: String) -> String {
        switch rule.kind {
        case .constant(let constant): return constant == scope ? "1" : "0"
        case .column(let name, _):
            let value = placeText(of: scope)
            let isDecimal = Int64(value).map { String($0) == value } ?? false
            let spellings = isDecimal ? "\(literal(value)), \(value)" : literal(value)
            // The column's own collation finds the rows, the exact name decides.
            return
                "\(row).\(quoted(name)) IN (\(spellings)) AND \(scopeSQL(row)) = \(literal(scope.name))"
        }
    }

    /// SQL for the marks that a scope has to look at, each part in the order of an index: its own, and those that any
    /// scope may look at.
    func placesSQL(_ scope: Scope) -> [String] {
        isScopedByColumn
            ? ["tidemark_place = \(literal(scope.name))", "tidemark_place = ''"] : ["tidemark_place IS NULL"]
    }
}
