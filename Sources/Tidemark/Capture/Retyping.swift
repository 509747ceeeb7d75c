import GRDB
import TidemarkWire

/// Columns that have another affinity since a rebuild. What was copied into them was converted by SQLite, and is no
/// edit: `7` that becomes `'7'`. What a migration made of it is one: `'007'`.
struct Retyping {
    let db: Database
    /// The columns by their place in a row, with what they were.
    let columns: [(index: Int, old: Affinity, new: Affinity)]

    /// - Parameter types: the columns' affinities when the manifest's hashes were made, each as its standard type.
    init(_ db: Database, _ shape: TableSchema, columns: [String]?, types: [String]?) throws {
        self.db = db
        guard let columns, let types, columns.count == types.count else {
            self.columns = []
            return
        }
        self.columns = zip(columns, types).compactMap { name, type in
            let old = Affinity(declaredType: type)
            guard let index = shape.dataIndex(name), shape.data[index].affinity != old else { return nil }
            return (index, old, shape.data[index].affinity)
        }
        guard !self.columns.isEmpty else { return }
        for (name, types) in [(Self.old, self.columns.map(\.old)), (Self.new, self.columns.map(\.new))] {
            let list = types.enumerated().map { "c\($0) \($1.standardType)" }.joined(separator: ", ")
            try db.execute(sql: "DROP TABLE IF EXISTS temp.\(name); CREATE TEMP TABLE \(name)(\(list))")
        }
    }

    func end() throws {
        guard !columns.isEmpty else { return }
        for name in [Self.old, Self.new] { try db.execute(sql: "DROP TABLE temp.\(name)") }
    }

    /// The row as it was before it was copied; `nil` where it was not converted, or holds something else.
    func before(_ row: [Cell]) throws -> [Cell]? {
        guard !columns.isEmpty else { return nil }
        let here = columns.map { row[$0.index] }
        let old = try store(here, in: Self.old)
        guard old != here, try store(old, in: Self.new) == here else { return nil }
        var before = row
        for (column, cell) in zip(columns, old) { before[column.index] = cell }
        return before
    }

    /// A row as a plain copy leaves it.
    func after(_ row: [Cell]) throws -> [Cell] {
        guard !columns.isEmpty else { return row }
        var after = row
        for (column, cell) in zip(columns, try store(columns.map { row[$0.index] }, in: Self.new)) {
            after[column.index] = cell
        }
        return after
    }

    private static let old = "tidemark_old_types"
    private static let new = "tidemark_new_types"

    private func store(_ cells: [Cell], in name: String) throws -> [Cell] {
        try Query(db, "DELETE FROM temp.\(name)").execute()
        let places = cells.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
        try Query(db, "INSERT INTO temp.\(name) VALUES (\(places))").execute(cells)
        return try Query(db, "SELECT * FROM temp.\(name)").first(db) { $0.cells(0..<cells.count) } ?? cells
    }
}
