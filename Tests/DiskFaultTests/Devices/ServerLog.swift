import GRDB

/// The server's log as it stands in its file, read beside the server.
struct ServerLog {
    /// Each record's titles, in the order of their versions.
    private(set) var titles: [String: [String]] = [:]
    private(set) var entries: Set<String> = []
    private var newest: [String: Int64] = [:]

    init(_ disk: FaultDisk) throws {
        let queue = try DatabaseQueue(path: disk.path("sync.sqlite"))
        defer { try? queue.close() }
        let rows = try queue.read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT entity, record, version,
                      CASE kind WHEN 0 THEN json_extract(CAST(payload AS TEXT), '$.title') END AS title
                    FROM change ORDER BY scope, version
                    """)
        }
        for row in rows {
            let (entity, record): (String, String) = (row["entity"], row["record"])
            newest["\(entity) \(record)"] = row["version"]
            if entity == "audit" { entries.insert(record) }
            if let title: String = row["title"] { titles[record, default: []].append(title) }
        }
    }

    /// Whether the log has come as far as a verdict says: `"entity"|"record"|version`.
    func isTaken(_ verdict: String) -> Bool {
        let parts = verdict.replacing("\"", with: "").split(separator: "|")
        guard parts.count == 3, let version = Int64(parts[2]) else { return false }
        return newest["\(parts[0]) \(parts[1])"] ?? 0 >= version
    }
}
