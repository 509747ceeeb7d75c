import GRDB
import TidemarkWire

extension FirstCapture {
    /// Keeps the keys of a table's rows, which come in the order of the table's key, many in one row.
    struct Writer {
        private let db: Database
        private let entity: String
        private let scope: Scope
        private let mark: Int64
        private let now: Int64
        private let insert: Query
        private let together = Dependencies.current.firstCaptureKeys
        private var keys: [Cell] = []

        init(_ db: Database, _ shape: TableSchema, in scope: Scope) throws {
            (self.db, entity, self.scope) = (db, shape.name, scope)
            mark = try Marks.next(db)
            now = try Query(db, "SELECT \(Marks.nowSQL)").first(db) { $0.integer(0) } ?? 0
            insert = try Query(
                db,
                """
                INSERT INTO tidemark_first_capture(scope, entity, first, last, records, prefix, keys, mark, captured_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                """)
            keys.reserveCapacity(together)
        }

        mutating func append(_ key: Cell) throws {
            keys.append(key)
            if keys.count == together { try write() }
        }

        mutating func finish() throws { if !keys.isEmpty { try write() } }

        private mutating func write() throws {
            let prefix = Self.prefix(of: keys[0], and: keys[keys.count - 1])
            var writer = JSONWriter(capacity: 48 * keys.count)
            for (place, key) in keys.enumerated() {
                writer.raw(place == 0 ? "[" : ",")
                switch key {
                case .text(let bytes):
                    bytes.withUnsafeBytes {
                        writer.string(utf8: UnsafeRawBufferPointer(rebasing: $0.dropFirst(prefix.count)))
                    }
                case .integer(let number): writer.integer(number)
                case .null, .real, .blob: break
                }
            }
            writer.raw("]")
            try insert.execute([
                .text(scope.name), .text(entity), keys[0], keys[keys.count - 1], .integer(Int64(keys.count)),
                .text(prefix), .text(writer.bytes), .integer(mark), .integer(now),
            ])
            keys.removeAll(keepingCapacity: true)
        }

        /// The characters that two texts begin with, as do all texts between them.
        private static func prefix(of first: Cell, and last: Cell) -> [UInt8] {
            guard case .text(let first) = first, case .text(let last) = last else { return [] }
            var count = zip(first, last).prefix { $0 == $1 }.count
            while count > 0, count < first.count, first[count] & 0xC0 == 0x80 { count -= 1 }
            while count > 0, count < last.count, last[count] & 0xC0 == 0x80 { count -= 1 }
            return Array(first[..<count])
        }
    }
}
