import GRDB

/// Reads what is in a device's file, so that two files compare equal from which an engine goes on alike: of moments
/// only whether they are noted, and nothing of what numbers rows.
struct FileReader {
    private enum Treatment {
        case verbatim
        case isNoted
        /// A row's number, which other rows name.
        case reference
        case skipped
    }

    private struct Table {
        var name: String
        var sql: String
        var treatments: [Treatment]
        var isSorted: Bool
    }

    private let tables: [Table]

    init(_ db: Database) throws {
        let names = try String.fetchAll(
            db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")
        var tables = try names.filter { $0 != "tidemark_counter" }.map { try Self.table(db, $0) }
        // Lanes have names made up by chance, in the order of which they stand; most were met elsewhere before.
        if let index = tables.firstIndex(where: { $0.name == "tidemark_lane" }) {
            tables.append(tables.remove(at: index))
            tables[tables.count - 1].isSorted = true
        }
        self.tables = tables
    }

    private static func table(_ db: Database, _ name: String) throws -> Table {
        let columns = try Row.fetchAll(db, sql: "PRAGMA table_info(\"\(name)\")")
        let isOurs = name.hasPrefix("tidemark_")
        let treatments = columns.map { column -> Treatment in
            let column: String = column["name"]
            guard isOurs else { return .verbatim }
            switch column {
            case "id" where name == "tidemark_operation", "operation": return .reference
            case "id" where name != "tidemark_lane", "tidemark_row": return .skipped
            case "tidemark_mark", "tidemark_since", "tidemark_edited", "last_sync": return .isNoted
            case _ where column.hasSuffix("_at"): return .isNoted
            default: return .verbatim
            }
        }
        let list = columns.map { "\"\($0["name"] as String)\"" }.joined(separator: ", ")
        let isShadow = columns.contains { $0["name"] == "tidemark_mark" }
        let isNumbered = isOurs && columns.contains { $0["name"] == "id" && $0["pk"] == 1 && $0["type"] == "INTEGER" }
        let order = isShadow ? " ORDER BY tidemark_mark, tidemark_row" : isNumbered ? " ORDER BY id" : ""
        // What was measured only grows, and nothing goes by it. A device has one engine, whatever the lease says.
        let condition = name == "tidemark_meta" ? " WHERE key NOT IN ('measures', 'lease')" : ""
        return Table(
            name: name, sql: "SELECT \(list) FROM \"\(name)\"\(condition)\(order)", treatments: treatments,
            isSorted: false)
    }

    /// Writes all that is in the file to the end of a text. Row numbers become words of their own, by `device`.
    func read(_ db: Database, device: Int, into text: inout [UInt8]) throws {
        for (index, table) in tables.enumerated() {
            var rows: [[UInt8]] = []
            let cursor = try Row.fetchCursor(try db.cachedStatement(sql: table.sql))
            while let row = try cursor.next() {
                var line: [UInt8] = [UInt8(truncatingIfNeeded: index), 0x1d]
                for (place, treatment) in table.treatments.enumerated() {
                    Self.write(row[place], treatment, device, to: &line)
                    line.append(0x1e)
                }
                if table.isSorted { rows.append(line) } else { text += line }
            }
            if table.isSorted {
                rows.sort { Self.masked($0).lexicographicallyPrecedes(Self.masked($1)) }
                for row in rows { text += row }
            }
        }
    }

    private static func write(_ value: DatabaseValue, _ treatment: Treatment, _ device: Int, to line: inout [UInt8]) {
        switch (treatment, value.storage) {
        case (.skipped, _): break
        case (_, .null): line.append(0)
        case (.isNoted, _): line.append(1)
        case (.reference, .int64(let number)): line += "^\(device)_\(number)".utf8
        case (_, .int64(let number)): line += "\(number)".utf8
        case (_, .double(let number)): line += "\(number)".utf8
        case (_, .string(let string)): line += string.utf8
        case (_, .blob(let data)): line += data
        }
    }

    /// The line without its long words: names made up by chance, which must not decide the order of rows, are long.
    private static func masked(_ line: [UInt8]) -> [UInt8] {
        line.split(separator: 0x1e, omittingEmptySubsequences: false).flatMap { $0.count >= 32 ? [] : $0 }
    }
}
