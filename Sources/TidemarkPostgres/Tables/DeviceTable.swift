import TidemarkWire

/// The table that devices make for an attached one. Types are named for their affinity: SQLite reads it from parts of a
/// name, so that an `INTERVAL` would be an integer, and a `NUMERIC` makes another number of an exact one.
extension AttachedTable {
    var deviceTable: String {
        let keys = Set(key.columns.map(\.name))
        let all = key.columns + columns.filter { !keys.contains($0.name) }
        let isNumbered = key.columns.count == 1 && key.columns[0].form == .integer
        var lines = all.map { column in
            let isKey = keys.contains(column.name)
            let rest = isKey ? (isNumbered ? " PRIMARY KEY NOT NULL" : " NOT NULL") : ""
            return (text: "  \(column.sql) \(column.deviceType)\(rest)", note: column.deviceNote)
        }
        if !isNumbered { lines.append((text: "  PRIMARY KEY (\(key.sql))", note: nil)) }
        let body = lines.enumerated().map { index, line in
            line.text + (index < lines.count - 1 ? "," : "") + (line.note.map { " -- \($0)" } ?? "")
        }
        return "CREATE TABLE \(SQL.quoted(entity)) (\n\(body.joined(separator: "\n"))\n);"
    }

    /// Columns whose numbers are exact, so that a device has to keep them as a text.
    var exactColumns: [String] { (key.columns + columns).filter { $0.kind == "numeric" }.map(\.name) }
}

extension AttachedColumn {
    fileprivate var deviceType: String {
        switch form {
        case .integer, .flag: "INTEGER"
        case .real: "REAL"
        case .blob: "BLOB"
        case .text, .instant, .moment, .day: "TEXT"
        }
    }

    fileprivate var deviceNote: String? {
        let name = type.split(whereSeparator: \.isNewline).joined(separator: " ")
        switch kind {
        case "numeric": return "\(name): exact; a NUMERIC or REAL column would hold another value"
        case "text", "varchar", "bpchar", "int2", "int4", "int8", "float4", "float8", "bytea": return nil
        default: return name
        }
    }
}
