import GRDB
import TidemarkServer
import TidemarkWire

extension SQLiteScope {
    func id(for name: TemporaryName) throws -> RecordID? {
        let statement = try db.cachedStatement(
            sql: "SELECT record FROM alias WHERE principal = ? AND client = ? AND entity = ? AND temporary = ?")
        return try String.fetchOne(
            statement, arguments: [name.principal.whole, name.client, name.entity, name.id.text]
        ).flatMap { RecordID($0) }
    }

    func assignment(of record: RecordID, entity: String) throws -> AssignmentPlace? {
        let statement = try db.cachedStatement(
            sql: "SELECT max(scope = ?) FROM alias INDEXED BY alias_record WHERE entity = ? AND record = ?")
        let isHere = try Bool.fetchOne(statement, arguments: [id ?? -1, entity, record.text])
        return isHere.map { $0 ? .here : .elsewhere }
    }
}

extension SQLiteScopeWriter {
    func store(_ id: RecordID, for name: TemporaryName, at moment: Int64) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO alias (principal, client, entity, temporary, record, scope, made_at)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """)
        try statement.execute(arguments: [
            name.principal.whole, name.client, name.entity, name.id.text, id.text, try create(at: moment), moment,
        ])
    }
}
