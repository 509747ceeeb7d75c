import TidemarkWire

/// A key that cannot be a record id, as one text: under it the file keeps why its row is not sent, and finds the row
/// again.
///
/// It is the canonical JSON array of the key's values, as in ids of several columns, with a line feed behind it, which
/// no record id holds: `[""]` as an id, and the row whose key is empty, are two records. Text that is not UTF-8 stands
/// as the blob of its bytes in an array of its own.
struct KeyText: Hashable, Sendable {
    let text: String

    init(_ key: [Cell]) {
        var writer = JSONWriter(capacity: 64)
        writer.raw("[")
        for (index, cell) in key.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.kept(cell)
        }
        writer.raw("]\n")
        text = String(decoding: writer.bytes, as: UTF8.self)
    }

    /// The record as people read it.
    static func shown(_ record: String) -> String { record.hasSuffix("\n") ? String(record.dropLast()) : record }

    /// The key that a record's text stands for, whether that is a record id or not; `nil` where no row of the table can
    /// have it.
    static func key(of record: String, in shape: TableSchema) -> [Cell]? {
        if let id = RecordID(record) { return shape.key(of: id) }
        let cells = try? Array(record.utf8).reading { (reader: inout JSONReader) throws(JSONError) -> [Cell] in
            var cells: [Cell] = []
            try reader.enterArray()
            while try reader.nextElement() { cells.append(try reader.readKept()) }
            try reader.finish()
            return cells
        }
        return cells.flatMap { $0.count == shape.key.count ? $0 : nil }
    }
}
