import TidemarkServer
import TidemarkWire

/// Rows that are appended to the log go into the operator's own table, in the same transaction.
///
/// Only fields that an edit changes are written, so that values stay that another program has written to other columns
/// since. Changes that the table makes to a row, by defaults or triggers, are looked at like any write, and reach the
/// log behind this one.
extension PostgresScopeWriter {
    /// - Throws: ``RowRefusal`` where the table does not take the row.
    func write(_ row: NewRow, to table: AttachedTable) throws {
        guard row.kind != .idmap else { return }
        guard let place = table.scopeText(in: scope) else {
            // A record that the log has from before may still be deleted.
            if row.kind == .delete { return }
            throw RowRefusal(
                code: RejectionCode.scopeMismatch, detail: "Records of \(table.entity) are not kept in this scope.",
                hint: "Check the scope rule of the table on the device.")
        }
        memory.tableWrites.home = table.home
        guard let key = try values(of: row.record, table) else {
            throw RowRefusal(
                code: RejectionCode.valueRefused, detail: "The table's key (\(table.key.label)) is not spelled so.",
                hint: "Spell numbers in plain digits, UUIDs in lower case, times in UTC.")
        }
        // A table may be scoped by its key, such as one with a row for each user.
        let placeInKey = table.key.index(of: table.scopeColumn).flatMap { key[$0].text }
        guard placeInKey.map({ $0.hasSameBytes(as: place) }) ?? true else {
            throw RowRefusal(
                code: RejectionCode.scopeMismatch, detail: "The record's id says another scope.",
                hint: "Send the record to the scope that it is in.")
        }
        let rules = try rules[table.id] ?? TableRules(of: table, session)
        self.rules[table.id] = rules
        // Values that the table cannot hold may stand in the log from before, and be deleted.
        if row.kind != .delete {
            for (column, value) in zip(table.key.columns, key) {
                if let text = value.text { try rules.check(text, for: column) }
            }
            if let column = table.scopeColumn { try rules.check(place, for: column) }
        }
        try write(row, key, place, table, rules)
        // The log gets the row that the device sent. A change that the table has made to it may leave no note under
        // this key and in this scope: a value put back or respelled, a row moved away or under another key, a delete
        // undone by a trigger.
        look(at: row.record, table)
    }

    /// The values of a record's key; `nil` where no row's key is spelled like its id.
    private func values(of record: RecordID, _ table: AttachedTable) throws -> [Parameter]? {
        guard let values = table.key.values(of: record.text) else { return nil }
        guard let spelling = table.key.spelling else { return values }
        if writesTogether {
            memory.tableWrites.requests.append(spelling.check(record, values))
            return values
        }
        guard case .success(let answers) = try session.trial([Request(spelling.statement, values)]) else { return nil }
        return answers.first.map { $0.text(0, 0).hasSameBytes(as: record.text) } == true ? values : nil
    }

    private func write(
        _ row: NewRow, _ key: [Parameter], _ place: String, _ table: AttachedTable, _ rules: TableRules
    ) throws {
        if row.kind == .delete { return try delete(key, place, table) }
        let fields = try DataObject(stored: row.payload ?? Array("{}".utf8))
        let former = row.kind.supersedes ? try live(row).payload.map { try DataObject(stored: $0) } : nil
        let changes = try table.changes(fields, since: former, of: key, in: place, rules)
        if former == nil {
            try insert(changes, key, place, table, rules, isEvent: row.kind == .event)
        } else {
            try update(changes, row.record, key, place, table, rules)
        }
    }

    private func insert(
        _ changes: [TableChange], _ key: [Parameter], _ place: String, _ table: AttachedTable, _ rules: TableRules,
        isEvent: Bool
    ) throws {
        var columns = table.key.columns.map(\.sql)
        var places = table.key.columns.enumerated().map { $1.place($0 + 1) }
        var parameters = key
        var scopePlace: String?
        if let column = table.scopeColumn {
            parameters.append(.text(place))
            if !table.key.contains(column) {
                columns.append(column.sql)
                places.append(column.place(parameters.count))
            }
            scopePlace = Self.same("(t.\(column.sql))::text", "$\(parameters.count)::text")
        }
        var sets: [String] = []
        for change in changes {
            parameters.append(change.parameter)
            columns.append(change.column.sql)
            places.append(change.column.place(parameters.count))
            sets.append("\(change.column.sql) = EXCLUDED.\(change.column.sql)")
        }
        // Something has to be set for the row to count.
        if sets.isEmpty, let column = (table.columns + table.key.columns).first(where: \.isWritable) {
            sets = ["\(column.sql) = t.\(column.sql)"]
        }
        // The log forgets events in time, the table does not: an event never changes the row that is there.
        if isEvent { sets = [] }
        let update = sets.isEmpty ? "NOTHING" : "UPDATE SET \(sets.joined(separator: ", "))"
        // A row of another scope is nobody's to overwrite who only knows its id.
        let condition = sets.isEmpty ? "" : scopePlace.map { " WHERE \($0)" } ?? ""
        let sql = """
            INSERT INTO \(table.sql) AS t (\(columns.joined(separator: ", "))) OVERRIDING SYSTEM VALUE
            VALUES (\(places.joined(separator: ", "))) ON CONFLICT (\(table.key.sql)) DO \(update)\(condition)
            """
        let written = changes.map(\.column)
        let names = Set((written + table.key.columns).map(\.name))
        let checks = try checks(table, rules, setting: names, &parameters)
        let request = Request(Statement("", checks.around(sql, hasToWrite: writesTogether)), parameters)
        guard try attempt(request, table, rules, changes) == 0 else { return }
        try refuseUnwritten(key, table)
    }

    /// The key is in another scope or an older event's, like any value that has to be the only one; or it is nowhere.
    private func refuseUnwritten(_ key: [Parameter], _ table: AttachedTable) throws -> Never {
        let condition = table.key.isSame("t", from: 1)
        let statement = Statement("", "SELECT EXISTS (SELECT 1 FROM \(table.sql) AS t WHERE \(condition))")
        if try session.ask([Request(statement, key)]).first?.flag(0, 0) == true {
            throw RowRefusal(notUnique: table.key.label)
        }
        throw RowRefusal(
            code: RejectionCode.tableRefused, detail: "A trigger of the server's table has passed over the row.",
            hint: "Ask the operator of the server which rows it lets in.")
    }

    private func update(
        _ changes: [TableChange], _ record: RecordID, _ key: [Parameter], _ place: String, _ table: AttachedTable,
        _ rules: TableRules
    ) throws {
        guard !changes.isEmpty else { return }
        var parameters = key
        let condition = scopeCondition(table, place, &parameters)
        var sets: [String] = []
        for change in changes {
            parameters.append(change.parameter)
            sets.append("\(change.column.sql) = \(change.column.place(parameters.count))")
        }
        let sql = """
            UPDATE \(table.sql) AS t SET \(sets.joined(separator: ", "))
            WHERE \(table.key.isSame("t", from: 1))\(condition)
            """
        let written = changes.map(\.column)
        let checks = try checks(table, rules, setting: Set(written.map(\.name)), &parameters)
        let request = Request(Statement("", checks.around(sql, hasToWrite: writesTogether)), parameters)
        guard try attempt(request, table, rules, changes) == 0 else { return }
        // Somebody has deleted or moved it a moment ago: the log hears of it next.
        look(at: record, table)
        throw RowRefusal(
            code: RejectionCode.recordDeleted, detail: "The row is not in the server's table any more.",
            hint: "Insert the record anew to revive it.")
    }

    private func delete(_ key: [Parameter], _ place: String, _ table: AttachedTable) throws {
        var parameters = key
        let condition = scopeCondition(table, place, &parameters)
        let statement = Statement(
            "", "DELETE FROM \(table.sql) AS t WHERE \(table.key.isSame("t", from: 1))\(condition)")
        _ = try attempt(Request(statement, parameters), table, rules[table.id], [])
    }

    private static let note = Statement(
        "note row", "INSERT INTO capture (scope, table_id, record) VALUES ($1, $2, $3)")

    private func look(at record: RecordID, _ table: AttachedTable) { memory.looks.append((table.id, record.text)) }

    /// Notes what nobody has looked at: servers find it like what other programs write.
    func noteLooks() throws {
        for look in memory.looks { try session.write(Self.note, name, .integer(look.table), .text(look.record)) }
        memory.looks = []
    }

    private func scopeCondition(
        _ table: AttachedTable, _ place: String, _ parameters: inout [Parameter]
    ) -> String {
        guard let column = table.scopeColumn else { return "" }
        parameters.append(.text(place))
        return " AND " + Self.same("(t.\(column.sql))::text", "$\(parameters.count)::text")
    }

    /// The path is the role's own here: another role may have put an operator of its own on it, which would run with
    /// the rights of the server.
    static func same(_ left: String, _ right: String) -> String { "\(left) OPERATOR(pg_catalog.=) \(right)" }

    static let pathOut = Statement("path out", "SET LOCAL search_path TO DEFAULT")
    static func pathBack(to home: String) -> Statement { Statement("path back", "SET LOCAL search_path TO \(home)") }
    /// Constraints are checked after each row: at the end of the transaction, an error would count for everything in
    /// it.
    static let checkNow = Statement("check now", "SET CONSTRAINTS ALL IMMEDIATE")

    /// Runs a write of one row, and answers how many rows it has reached. The table's own triggers run with the paths
    /// that they expect.
    private func attempt(
        _ request: Request, _ table: AttachedTable, _ rules: TableRules?, _ changes: [TableChange]
    ) throws -> Int {
        if writesTogether {
            memory.tableWrites.requests.append(request)
            return 1
        }
        let requests = [
            Request(Self.pathOut), request, Request(Self.checkNow), Request(Self.pathBack(to: table.home)),
        ]
        switch try session.trial(requests) {
        case .success(let answers): return answers.count > 1 ? answers[1].affected : 0
        case .failure(let error):
            if let refusal = try refusal(of: changes, table, error) { throw refusal }
            throw RowRefusal(error, rules?.references ?? [], columns: changes.map(\.column))
        }
    }
}

/// A column that an edit sets.
struct TableChange {
    let column: AttachedColumn
    let parameter: Parameter
}

extension AttachedTable {
    /// The columns whose fields are others than they were. Names on the wire only ever choose among the columns that
    /// the catalogue has named.
    func changes(
        _ fields: DataObject, since former: DataObject?, of key: [Parameter], in place: String,
        _ rules: TableRules
    ) throws -> [TableChange] {
        let known = former?.lookup
        var changes: [TableChange] = []
        for field in fields.fields where known?[fields.name(field)] != fields.value(field) {
            let name = fields.nameString(field)
            let value = fields.decoded(field) ?? .null
            if let index = self.key.columns.firstIndex(where: { Identifier.isSameName($0.name, name) }) {
                let column = self.key.columns[index]
                guard column.form.parameter(value) == key[index] else { throw RowRefusal(valueOf: column, nil) }
                continue
            }
            guard let column = column(name) else {
                throw RowRefusal(
                    code: RejectionCode.columnUnknown, detail: "The server's table takes no column of that name.",
                    hint: "Add the column to the server's table and attach it again.")
            }
            let parameter = try rules.parameter(value, for: column)
            if column == scopeColumn {
                guard parameter.text == place else {
                    throw RowRefusal(
                        code: RejectionCode.scopeMismatch, detail: "The record's \(column.name) says another scope.",
                        hint: "Send the record to the scope that it is in.")
                }
            } else if column.isWritable {
                changes.append(TableChange(column: column, parameter: parameter))
            }
        }
        return changes
    }
}

extension Parameter {
    fileprivate var text: String? {
        if case .text(let text) = self { text } else { nil }
    }
}
