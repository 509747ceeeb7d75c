public import TidemarkWire

extension SyncedTable {
    /// Which scope a table's rows belong to.
    public struct ScopeRule: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case constant(Scope)
            case column(String, prefix: String)
        }

        let kind: Kind
        /// The sub-scope of each scope that holds the rows; `nil`: the scope itself. A constant scope is the sub-scope
        /// already.
        let subscope: String?

        /// All rows belong to this scope.
        public static func constant(_ scope: Scope) -> ScopeRule {
            ScopeRule(kind: .constant(scope), subscope: scope.subscope)
        }

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
        package func mayHaveRows(in scope: Scope) -> Bool {
            switch kind {
            case .constant(let constant): return constant == scope
            case .column(_, let prefix):
                let name = scope.parent.name
                return scope.subscope == subscope && name.utf8.count > prefix.utf8.count && name.hasPrefix(prefix)
            }
        }

        /// The rule as the file keeps it, so that a later change of it is noticed: neither a prefix nor a scope has a
        /// sub-scope's mark in it.
        var description: String {
            switch kind {
            case .constant(let scope): "constant \(scope.name)"
            case .column(let name, let prefix): "column \(prefix)\(suffix) \(name)"
            }
        }

        init?(_ description: String) {
            let parts = description.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            switch (parts.first, parts.count) {
            case ("constant", 2):
                guard let scope = Scope(String(parts[1])) else { return nil }
                self.init(kind: .constant(scope), subscope: scope.subscope)
            case ("column", 3):
                let place = parts[1].split(
                    separator: Scope.subscopeMark, maxSplits: 1, omittingEmptySubsequences: false)
                let subscope = place.count > 1 ? String(place[1]) : nil
                self.init(kind: .column(String(parts[2]), prefix: String(place[0])), subscope: subscope)
            default: return nil
            }
        }

        /// The scopes that it makes, for people: `list:7`, or `list:<list_id>`.
        package var scopes: String {
            switch kind {
            case .constant(let scope): scope.name
            case .column(let name, let prefix): "\(prefix)<\(name)>\(suffix)"
            }
        }

        /// The part of a sub-scope's name behind its scope's.
        var suffix: String { subscope.map { "\(Scope.subscopeMark)\($0)" } ?? "" }

        /// The same rule for a table in a sub-scope; `nil` where the names are too long together.
        func inSubscope(_ subscope: String?) -> ScopeRule? {
            switch kind {
            case .constant(let scope):
                scope.appending(subscope: subscope).map { ScopeRule(kind: .constant($0), subscope: subscope) }
            case .column: ScopeRule(kind: kind, subscope: subscope)
            }
        }

        /// The rule as an app names it, with the sub-scope beside it.
        var ofScope: ScopeRule { inSubscope(nil) ?? self }

        private init(kind: Kind, subscope: String? = nil) {
            self.kind = kind
            self.subscope = subscope
        }
    }
}

// MARK: - Rows

extension TableSchema {
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
            case .text(let bytes) where !bytes.isEmpty: return place(prefix + String(decoding: bytes, as: UTF8.self))
            case .integer(let value): return place(prefix + String(value))
            case .null, .text, .real, .blob, nil: return nil
            }
        }
    }

    /// A column names a scope, never a sub-scope.
    private func place(_ name: String) -> Scope? {
        guard let scope = Scope(name), scope.subscope == nil else { return nil }
        return scope.appending(subscope: rule.subscope)
    }

    /// SQL for the name of a row's scope, where `row` is the table, an alias, `OLD` or `NEW`; the empty text where its
    /// value makes none, and NULL in a table whose scope is constant.
    func scopeSQL(_ row: String) -> String {
        guard case .column(let name, let prefix) = rule.kind else { return "NULL" }
        let value = "\(row).\(quoted(name))"
        let suffix = rule.suffix
        let made = "\(literal(prefix)) || \(value)"
        let place = suffix.isEmpty ? made : "\(made) || \(literal(suffix))"
        // Text that holds NUL ends there for length() and GLOB, but not as a BLOB.
        return """
            CASE WHEN typeof(\(value)) IN ('text', 'integer') \
            AND length(CAST(\(made) AS BLOB)) BETWEEN \(prefix.utf8.count + 1) \
            AND \(Identifier.scopeLimit - suffix.utf8.count) \
            AND length(\(value)) = length(CAST(\(value) AS BLOB)) AND \(made) NOT GLOB '*[^-A-Za-z0-9._:@]*' \
            THEN \(place) ELSE '' END
            """
    }

    /// Returns the scope column's value in a row of the scope, as text.
    func placeText(of scope: Scope) -> String {
        guard case .column(_, let prefix) = rule.kind else { return "" }
        return String(scope.parent.name.dropFirst(prefix.count))
    }

    /// Returns the scope column's value in a row of the scope, in the column's own type.
    func placeCell(of scope: Scope) -> Cell {
        let text = placeText(of: scope)
        let number = scopeIndex.flatMap { data[$0].affinity == .text ? nil : Int64(text) }
        guard let number, String(number) == text else { return .text(Array(text.utf8)) }
        return .integer(number)
    }

    /// SQL for whether a row is in a scope; an index on the column serves it.
    func isInSQL(_ scope: Scope, _ row: String) -> String {
        switch rule.kind {
        case .constant: return rule.mayHaveRows(in: scope) ? "1" : "0"
        case .column(let name, _):
            let value = placeText(of: scope)
            let isDecimal = Int64(value).map { String($0) == value } ?? false
            let spellings = isDecimal ? "\(literal(value)), \(value)" : literal(value)
            // The column's own collation finds the rows, the exact name decides.
            return
                "\(row).\(quoted(name)) IN (\(spellings)) AND \(scopeSQL(row)) = \(literal(scope.name))"
        }
    }
}
