import Foundation
import TidemarkServer
import TidemarkWire

/// A device's row refers to rows that its author may see, and to no others: who could name any row would learn which
/// ones there are, and could keep them from being deleted.
///
/// The statement that writes the row also looks for what it refers to, as defaults and triggers have left it, and
/// before PostgreSQL itself does. So a row of another scope and one that is not there end in the same place.
extension PostgresScopeWriter {
    /// Conditions on the row that a statement has written, under the name `written`, and what it has to give for them.
    struct ReferenceChecks {
        var returned: [String] = []
        var conditions: [String] = []

        /// The statement with the conditions around it; as many rows come of it as it has written.
        ///
        /// - Parameter hasToWrite: whether it fails where it writes no row.
        func around(_ sql: String, hasToWrite: Bool) -> String {
            if hasToWrite {
                let columns = returned.isEmpty ? "1 AS one" : returned.joined(separator: ", ")
                // The operator's own path may hold functions of these names, whoever made them.
                let looks =
                    ["1 OPERATOR(pg_catalog./) pg_catalog.count(*)"] + conditions.map { "pg_catalog.count(\($0))" }
                return """
                    WITH written AS (\(sql) RETURNING \(columns))
                    SELECT \(looks.joined(separator: ", ")) FROM written
                    """
            }
            guard !conditions.isEmpty else { return sql }
            return """
                WITH written AS (\(sql) RETURNING \(returned.joined(separator: ", ")))
                SELECT \(conditions.joined(separator: ", ")) FROM written
                """
        }
    }

    /// - Throws: ``GrantsWanted`` where what the caller may read decides and is not known yet.
    func checks(
        _ table: AttachedTable, _ rules: TableRules, setting columns: Set<String>, _ parameters: inout [Parameter]
    ) throws -> ReferenceChecks {
        guard let grants = referenceGrants else { return ReferenceChecks() }
        var checks = ReferenceChecks()
        var wanted: [Scope] = []
        for (index, reference) in rules.references.enumerated() {
            guard reference.isChosen(bySetting: columns, scopeColumn: table.scopeColumn?.name),
                let parent = reference.parentNumber.flatMap({ tables[$0] })
            else { continue }
            var condition: String?
            switch parent.place {
            case .constant(let name):
                // The author may see every row of his own scope, so the constraint's own check is enough.
                if name == scope.parent.name { continue }
                guard let other = Scope(name) else { break }
                guard let isGranted = grants[other] else {
                    wanted.append(other)
                    continue
                }
                if isGranted { continue }
            case .column(let column, _):
                guard let place = scope.appending(subscope: parent.subscope), let text = parent.scopeText(in: place)
                else { break }
                parameters.append(.text(text))
                condition = Self.same("(parent.\(column.sql))::text", "$\(parameters.count)::text")
            }
            checks.add(reference, index, isOwnTable: parent.id == table.id, condition)
        }
        guard wanted.isEmpty else { throw GrantsWanted(scopes: wanted) }
        return checks
    }
}

extension PostgresScopeWriter.ReferenceChecks {
    /// - Parameter condition: what has to hold of the row that is referred to; `nil` where none will do.
    fileprivate mutating func add(
        _ reference: TableReference, _ index: Int, isOwnTable: Bool, _ condition: String?
    ) {
        var (isNull, joins, isItself): ([String], [String], [String]) = ([], [], [])
        for (place, pair) in reference.pairs.enumerated() {
            let (own, other) = ("own_\(index)_\(place)", "other_\(index)_\(place)")
            returned.append("t.\(SQL.quoted(pair.own)) AS \(own)")
            isNull.append("written.\(own) IS NULL")
            joins.append("parent.\(SQL.quoted(pair.other)) \(pair.equals) (written.\(own) \(pair.collation))")
            guard isOwnTable else { continue }
            // The statement does not see the row that it writes.
            returned.append("t.\(SQL.quoted(pair.other)) AS \(other)")
            isItself.append("written.\(other) \(pair.equals) (written.\(own) \(pair.collation))")
        }
        var holds = isNull
        if let condition {
            let rows = "SELECT 1 FROM \(reference.parent) AS parent"
            holds.append("EXISTS (\(rows) WHERE \((joins + [condition]).joined(separator: " AND ")))")
            if isOwnTable { holds.append("(\(isItself.joined(separator: " AND ")))") }
        }
        conditions.append(
            """
            CASE WHEN \(holds.joined(separator: " OR ")) THEN true
            ELSE pg_catalog.current_setting('\(Self.mark)\(index)') IS NULL END
            """)
    }

    /// A setting that nobody makes: PostgreSQL has no other expression that fails with a text of one's own, and what
    /// fails inside the statement undoes it there and then.
    private static let mark = "tidemark.refers_to_"

    /// Which of the references a statement has failed by; `nil` where it has failed by something else.
    static func failed(_ error: PostgresError) -> Int? {
        guard error.sqlState == "42704", let mark = error.message.range(of: mark) else { return nil }
        return Int(error.message[mark.upperBound...].prefix { $0.isASCII && $0.isNumber })
    }
}
