import GRDB

/// The present names of columns that were captured. SQLite keeps the capture triggers in step with a `RENAME COLUMN`,
/// and so they tell which column is which, although another one may have taken its name.
struct ColumnNames {
    /// Names that a new column has taken over.
    private(set) var reused: [String] = []
    /// Whether columns that were captured have exchanged their names: each row holds something else under them.
    private(set) var areExchanged = false

    init(_ db: Database, _ shape: TableSchema) throws {
        guard let captured = try CaptureRecord.read(db, shape.name).columns,
            let trigger = try Query(db, "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?1")
                .first(db, [.text(CaptureTriggers.name("delete", of: shape.name))], { $0.text(0) }),
            trigger.contains("BEGIN")
        else { return }
        let present = Self.columns(in: trigger).dropFirst(shape.key.count)
        guard present.count == captured.count else { return }
        for (name, now) in zip(captured, present)
        where !name.isSameName(as: now) && shape.dataIndex(name) != nil {
            if present.contains(where: { $0.isSameName(as: name) }) {
                areExchanged = true
            } else {
                reused.append(name)
            }
        }
    }

    /// The columns of the row that the trigger notes, in the order in which they were captured.
    private static func columns(in trigger: String) -> [String] {
        var names: [String] = []
        guard var rest = trigger.firstRange(of: "SELECT OLD.").map({ trigger[$0.upperBound...] }) else { return [] }
        while rest.hasPrefix("\"") {
            rest = rest.dropFirst()
            var name = ""
            while let end = rest.firstIndex(of: "\"") {
                name += rest[..<end]
                rest = rest[end...].dropFirst()
                guard rest.hasPrefix("\"") else { break }
                name += "\""
                rest = rest.dropFirst()
            }
            names.append(name)
            guard rest.hasPrefix(", OLD.") else { break }
            rest = rest.dropFirst(6)
        }
        return names
    }
}
