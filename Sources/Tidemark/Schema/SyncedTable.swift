public import GRDB
public import TidemarkWire

/// A table that is kept in sync, and how.
///
/// ```swift
/// [
///     .table(Project.self, scope: .column("workspace_id", prefix: "workspace:")),
///     .table("tag", scope: .constant("user:42")),
/// ]
/// ```
public struct SyncedTable: Hashable, Sendable {
    /// The table's name, in whichever case. As the file spells it, it is the entity's name on the wire.
    public var name: String
    /// Where its rows belong; `nil`: to the engine's only scope.
    public var scope: ScopeRule?
    /// The conflict policy that the app counts on; it is compared with what the server declares.
    public var conflicts: ConflictPolicy?
    /// For how long rows that were deleted elsewhere are kept for ``SyncEngine/restore(_:)``; `nil`: not at all.
    public var keepsDeleted: Duration?
    /// The side that the app counts on to make the ids of new records; it is compared with the server's declaration.
    public var ids: EntityDeclaration.IDSource?
    /// The sub-scope that the table is in, as the server declares it: within each scope its tables have a log and
    /// checkpoints of their own, so that they sync, and fail, apart from the rest (A3); `nil`: the scope itself.
    public var subscope: String?
    /// Places in JSON documents that hold ids of other records. Foreign keys need not be named.
    public var references: [DocumentID]
    /// Columns that name bytes, such as a picture's, which travel apart from the records (A12).
    public var attachments: [Attachment] = []

    /// A place in JSON documents of one column that holds ids of another table's records.
    public struct DocumentID: Hashable, Sendable {
        /// The column that holds the documents, as text.
        public var column: String
        /// Where in a document: names, `[0]` and `[*]` behind `$`, as in `$.items[*].order_id`.
        public var path: String
        /// The table whose ids stand there.
        public var table: String

        /// A place in a column's JSON documents.
        public static func json(_ column: String, path: String, to table: String) -> DocumentID {
            DocumentID(column: column, path: path, table: table)
        }
    }

    /// A table by its name.
    public static func table(
        _ name: String, scope: ScopeRule? = nil, conflicts: ConflictPolicy? = nil,
        ids: EntityDeclaration.IDSource? = nil, references: [DocumentID] = [], keepsDeleted: Duration? = nil,
        subscope: String? = nil, attachments: [Attachment] = []
    ) -> SyncedTable {
        SyncedTable(
            name: name, scope: scope, conflicts: conflicts, keepsDeleted: keepsDeleted, ids: ids, subscope: subscope,
            references: references, attachments: attachments)
    }

    /// The table of a GRDB record type, so that a typo does not compile.
    public static func table<Record: TableRecord>(
        _ record: Record.Type, scope: ScopeRule? = nil, conflicts: ConflictPolicy? = nil,
        ids: EntityDeclaration.IDSource? = nil, references: [DocumentID] = [], keepsDeleted: Duration? = nil,
        subscope: String? = nil, attachments: [Attachment] = []
    ) -> SyncedTable {
        SyncedTable(
            name: record.databaseTableName, scope: scope, conflicts: conflicts, keepsDeleted: keepsDeleted, ids: ids,
            subscope: subscope, references: references, attachments: attachments)
    }

    /// Each table with its rule, or an error that says what does not fit together.
    static func resolve(_ tables: [SyncedTable], scopes: [Scope]) throws -> [(name: String, rule: ScopeRule)] {
        guard !tables.isEmpty, !scopes.isEmpty else {
            throw SyncError(
                .configurationInvalid, "Nothing to sync.", hint: "Name at least one table and one scope.")
        }
        let names = tables.map(\.name)
        // Names that differ in their bytes only are refused too: programs take them for equal.
        guard Set(names.map(SQLName.init)).count == tables.count, Set(names).count == tables.count,
            Set(scopes).count == scopes.count
        else {
            throw SyncError(.configurationInvalid, "A table or scope is named twice.", hint: "Name each once.")
        }
        if let scope = scopes.first(where: { $0.subscope != nil }) {
            throw SyncError(
                .configurationInvalid, "'\(scope)' names a sub-scope.",
                hint: "Name the scope \(scope.parent), and the sub-scope with its tables.")
        }
        return try tables.map { ($0.name, try $0.rule(among: scopes)) }
    }

    private func rule(among scopes: [Scope]) throws -> ScopeRule {
        if let subscope, !Identifier.isSubscope(subscope) {
            throw SyncError(
                .configurationInvalid, "'\(subscope)' is not a sub-scope's name.",
                hint: "Use \(Identifier.subscopeHint).")
        }
        let rule = try scope ?? onlyRule(among: scopes)
        try rule.check(of: name, scopes: scopes)
        guard let rule = rule.inSubscope(subscope) else {
            throw SyncError(
                .configurationInvalid, "The scope's name and the sub-scope's of table '\(name)' are too long.",
                hint: "Together they take up to \(Identifier.scopeLimit - 1) characters.")
        }
        return rule
    }

    private func onlyRule(among scopes: [Scope]) throws -> ScopeRule {
        guard scopes.count == 1 else {
            throw SyncError(
                .configurationInvalid, "It is not clear which scope table '\(name)' belongs to.",
                hint: "Give it `scope: .constant(…)` or `.column(…)`: the engine has several scopes.")
        }
        return .constant(scopes[0])
    }
}

extension [(name: String, rule: SyncedTable.ScopeRule)] {
    /// All that is followed with these scopes: each, and behind it its sub-scopes that may have rows.
    func followed(_ scopes: [Scope]) -> [Scope] {
        let subscopes = Set(compactMap(\.rule.subscope)).sorted()
        return scopes.flatMap { scope in
            [scope]
                + subscopes.compactMap { scope.appending(subscope: $0) }.filter { part in
                    contains { $0.rule.mayHaveRows(in: part) }
                }
        }
    }
}

extension SyncedTable.ScopeRule {
    fileprivate func check(of table: String, scopes: [Scope]) throws {
        switch kind {
        case .constant(let scope):
            guard !scopes.contains(scope) else { return }
            throw SyncError(
                .configurationInvalid, "Table '\(table)' is in scope \(scope), which is not synced.",
                hint: "Add the scope to the engine's scopes.")
        case .column(_, let prefix):
            guard !prefix.isEmpty, Scope(prefix + "0").map({ $0.subscope != nil }) ?? true else { return }
            throw SyncError(
                .configurationInvalid, "'\(prefix)' is not the beginning of a scope's name.",
                hint: "A scope's name is made of letters, digits and '._:@-'.")
        }
    }
}

extension SyncedTable {
    /// Holds what the app counts on against what the operator declared.
    func check(_ declared: EntityDeclaration) throws {
        try check(conflicts?.rawValue, declared.conflict.rawValue, "conflicts", "conflict")
        try check(ids?.rawValue, declared.ids.rawValue, "ids", "ids")
        try checkAttachments(declared)
        guard subscope != declared.subscope else { return }
        let (here, there) = (
            subscope.map { "sub-scope '\($0)'" } ?? "no sub-scope", declared.subscope.map { "'\($0)'" } ?? "none"
        )
        throw SyncError(
            .declarationMismatch, "The app has '\(name)' in \(here), the server declares \(there).",
            hint: "Change `subscope:` in the app or the entity's `subscope` on the server.")
    }

    private func check(_ expected: String?, _ declared: String, _ here: String, _ there: String) throws {
        guard let expected, expected != declared else { return }
        throw SyncError(
            .declarationMismatch, "The app expects '\(expected)' for '\(name)', the server declares '\(declared)'.",
            hint: "Change `\(here):` in the app or the entity's `\(there)` on the server.")
    }
}
