import GRDB
import TidemarkWire

/// What the file remembers of one table's capture, to tell whether every write since has been seen.
struct CaptureRecord: Hashable {
    /// Where the table stood in the file's schema. A table that was dropped and made anew stands elsewhere.
    var identity: String?
    /// The data columns that the manifest's hashes are made of; `nil` where there is no manifest yet.
    var columns: [String]?

    static func read(_ db: Database, _ table: String) throws -> CaptureRecord {
        try Query(db, "SELECT identity, columns FROM tidemark_table WHERE name = ?1").first(db, [.text(table)]) { row in
            CaptureRecord(identity: row.optionalText(0), columns: row.optionalText(1).map { NameList.decode($0) })
        } ?? CaptureRecord()
    }

    func write(_ db: Database, _ table: String) throws {
        try Query(db, "UPDATE tidemark_table SET identity = ?2, columns = ?3 WHERE name = ?1").execute([
            .text(table), .optional(identity), .optional(columns.map { NameList.encode($0) }),
        ])
    }

    /// Where a table stands in the schema now: its row there and its first page. A rebuild changes at least one of
    /// them, and so may VACUUM, after which the rows are compared in vain.
    static func identity(_ db: Database, _ table: String) throws -> String? {
        try Query(db, "SELECT rowid || '/' || rootpage FROM sqlite_master WHERE type = 'table' AND name = ?1")
            .first(db, [.text(table)]) { $0.text(0) }
    }
}

/// A list of names as the file keeps it, whatever is in them.
enum NameList {
    static func encode(_ names: [String]) -> String {
        var writer = JSONWriter(capacity: 64)
        writer.raw("[")
        for (index, name) in names.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(name)
        }
        writer.raw("]")
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    static func decode(_ text: String) -> [String] {
        let names = try? Array(text.utf8).reading { (reader: inout JSONReader) throws(JSONError) -> [String] in
            var names: [String] = []
            try reader.enterArray()
            while try reader.nextElement() { names.append(try reader.readString()) }
            return names
        }
        return names ?? []
    }
}
