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

    func wasAssigned(_ record: RecordID, to name: TemporaryName) throws -> Bool {
        let statement = try db.cachedStatement(
            sql: """
                SELECT EXISTS (SELECT 1 FROM alias INDEXED BY alias_record
                    WHERE entity = ? AND record = ? AND client = ? AND temporary = ? AND scope = ?)
                """)
        return try Bool.fetchOne(
            statement, arguments: [name.entity, record.text, name.client, name.id.text, id ?? -1]) ?? false
    }

    func lastNumber(of entity: String) throws -> Int64 {
        let statement = try db.cachedStatement(sql: "SELECT number FROM assigned WHERE entity = ?")
        return try Int64.fetchOne(statement, arguments: [entity]) ?? 0
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

    func setLastNumber(_ number: Int64, of entity: String) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO assigned (entity, number) VALUES (?, ?)
                ON CONFLICT (entity) DO UPDATE SET number = excluded.number
                """)
        try statement.execute(arguments: [entity, number])
    }
}
