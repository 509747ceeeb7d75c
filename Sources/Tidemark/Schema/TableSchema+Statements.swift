/// The SQL of one synced table and its shadow. It is made once for a shape: a page of a few rows takes less time than
/// these texts.
struct RecordStatements: Hashable, Sendable {
    private(set) var rowSelect = ""
    private(set) var rowDelete = ""
    private(set) var touchedSelect = ""
    private(set) var rowUpsert = ""
    /// As ``rowDelete`` and ``rowUpsert``, for where foreign keys are on. GRDB notes which tables a statement writes
    /// when it prepares its text, and the app's observations hear of no others: without foreign keys that is the one
    /// table.
    private(set) var rowDeleteWithActions = ""
    private(set) var rowUpsertWithActions = ""
    private(set) var shadowSelect = ""
    private(set) var markedSelect = ""
    private(set) var shadowUpsert = ""
    private(set) var shadowDelete = ""
    private(set) var shadowQuarantined = ""
    private(set) var shadowGone = ""
    private(set) var shadowHead = ""
    private(set) var shadowUnmark = ""
    private(set) var shadowMark = ""
    private(set) var cleanShadowDelete = ""
    private(set) var shadowRoutingScope = ""
    private(set) var ownerSelect = ""
    private(set) var shadowsExist = ""
}

extension TableSchema {
    /// Whether one statement can read a shadow with its row: SQLite gives up to 2000 columns.
    var fitsBesideShadow: Bool { 2 * data.count + key.count + 10 <= 2000 }
}

extension RecordStatements {
    /// Whether nothing was edited since the last sealing, and no row of the server's came under the edit, as SQL.
    private static let isClean = """
        tidemark_mark IS NULL AND tidemark_version IS NULL AND tidemark_state <> \(Shadow.State.deleted.rawValue)
        """

    init(of shape: TableSchema) {
        let keys = shape.key.map(\.sql)
        let isKey = shape.isKeySQL
        let keyList = keys.joined(separator: ", ")
        let dataList = shape.data.map { ", \($0.sql)" }.joined()
        // A constant column keeps the list from being empty in a table that is all key.
        rowSelect = "SELECT 1\(dataList) FROM \(shape.sql) WHERE \(isKey)"
        touchedSelect = "SELECT tidemark_was\(dataList) FROM \(shape.touchedSQL) WHERE \(isKey)"
        rowDelete = "DELETE FROM \(shape.sql) WHERE \(isKey)"
        rowUpsert = Self.upsert(shape, Array(shape.data.indices))
        rowDeleteWithActions = rowDelete + " -- with what refers to it"
        rowUpsertWithActions = rowUpsert + " -- with what refers to it"
        let extra = """
            tidemark_state, tidemark_version, tidemark_bases, tidemark_mark, tidemark_since, tidemark_edited, \
            tidemark_scope, tidemark_routing_scope, tidemark_gone
            """
        shadowSelect = "SELECT \(extra)\(dataList) FROM \(shape.shadowSQL) WHERE \(isKey)"
        markedSelect = Self.marked(shape, extra)
        shadowHead = "SELECT \(extra) FROM \(shape.shadowSQL) WHERE \(isKey)"
        shadowUnmark = """
            UPDATE \(shape.shadowSQL) SET tidemark_mark = NULL, tidemark_since = NULL WHERE \(isKey)
            """
        shadowMark = """
            UPDATE \(shape.shadowSQL) SET tidemark_mark = coalesce(tidemark_mark, (SELECT n FROM tidemark_counter)), \
            tidemark_since = coalesce(tidemark_since, tidemark_edited >> 16) WHERE \(isKey)
            """
        cleanShadowDelete = """
            DELETE FROM \(shape.shadowSQL) WHERE \(isKey)
            AND \(Self.isClean) AND tidemark_scope IS ?\(keys.count + 1)
            """
        shadowRoutingScope = "UPDATE \(shape.shadowSQL) SET tidemark_routing_scope = ?\(keys.count + 1) WHERE \(isKey)"
        ownerSelect = """
            SELECT coalesce(nullif((SELECT tidemark_scope FROM \(shape.shadowSQL) WHERE \(isKey)), ''),
              (SELECT \(shape.scopeSQL("t")) FROM \(shape.sql) AS t WHERE \(isKey)),
              (SELECT tidemark_routing_scope FROM \(shape.shadowSQL) WHERE \(isKey)))
            """
        shadowsExist = "SELECT 1 FROM \(shape.shadowSQL) LIMIT 1"
        shadowQuarantined = "UPDATE \(shape.shadowSQL) SET tidemark_gone = NULL WHERE \(isKey)"
        shadowGone = "UPDATE \(shape.shadowSQL) SET tidemark_gone = ?\(keys.count + 1) WHERE \(isKey)"
        shadowDelete = "DELETE FROM \(shape.shadowSQL) WHERE \(isKey)"
        let marks = (1...(keys.count + 9 + shape.data.count)).map { "?\($0)" }.joined(separator: ", ")
        let names = extra.split(separator: ",").map { $0.trimmingPrefix(" ") } + shape.data.map { $0.sql[...] }
        let sets = names.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        shadowUpsert = """
            INSERT INTO \(shape.shadowSQL)(\(keyList), \(extra)\(dataList)) VALUES (\(marks)) \
            ON CONFLICT(\(keyList)) DO UPDATE SET \(sets)
            """
    }

    /// All that sealing asks of a record, by the number of its shadow: the shadow, its key, and the row, if there is
    /// one. In a table of very many columns the row is left out.
    private static func marked(_ shape: TableSchema, _ extra: String) -> String {
        func list(_ name: String, _ columns: [TableSchema.Column]) -> String {
            columns.map { ", \(name).\($0.sql)" }.joined()
        }
        // As `rowSelect` compares: a bound value has no affinity of its own.
        let isSame = shape.key.map { "app.\($0.sql) = +noted.\($0.sql)" }.joined(separator: " AND ")
        let head = extra.split(separator: ",").map { "noted.\($0.trimmingPrefix(" "))" }.joined(separator: ", ")
        let isJoined = shape.fitsBesideShadow
        let row = isJoined ? ", app.\(shape.key[0].sql) IS NOT NULL\(list("app", shape.data))" : ""
        return """
            SELECT \(head)\(list("noted", shape.data))\(list("noted", shape.key))\(row) FROM \(shape.shadowSQL) AS noted
            \(isJoined ? "LEFT JOIN \(shape.sql) AS app ON \(isSame)" : "") WHERE noted.tidemark_row = ?1
            """
    }

    /// Writes the given data columns of a row that exists, and leaves the others as they are. They are at least one.
    ///
    /// - Parameter only: a condition that the row has to meet.
    static func update(_ shape: TableSchema, _ indexes: [Int], only: String? = nil) -> String {
        let isKey = shape.key.indices.map { "\(shape.key[$0].sql) = ?\($0 + 1)" }.joined(separator: " AND ")
        let sets = indexes.enumerated().map { "\(shape.data[$1].sql) = ?\(shape.key.count + $0 + 1)" }
        return "UPDATE \(shape.orAbort)\(shape.sql) SET \(sets.joined(separator: ", ")) WHERE \(isKey)"
            + (only.map { " AND \($0)" } ?? "")
    }

    /// Writes the given data columns of a row, whether it exists or not.
    ///
    /// - Parameter isWhole: the columns are all that the record has; in a row that exists the others return to their
    ///   defaults, which is what `excluded` holds for a column that is not named.
    /// - Parameter only: a condition that a row which exists has to meet.
    static func upsert(
        _ shape: TableSchema, _ indexes: [Int], isWhole: Bool = false, only: String? = nil
    ) -> String {
        let keys = shape.key.map(\.sql)
        let columns = indexes.map { shape.data[$0].sql }
        let others = shape.data.indices.filter { isWhole && shape.data[$0].returnsToDefault && !indexes.contains($0) }
        let marks = (1...(keys.count + columns.count)).map { "?\($0)" }.joined(separator: ", ")
        let sets = (columns + others.map { shape.data[$0].sql })
            .map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        return """
            INSERT \(shape.orAbort)INTO \(shape.sql)(\((keys + columns).joined(separator: ", "))) VALUES (\(marks)) \
            ON CONFLICT(\(keys.joined(separator: ", "))) DO \(sets.isEmpty ? "NOTHING" : "UPDATE SET \(sets)")\
            \(only.map { " WHERE \($0)" } ?? "")
            """
    }
}
