import GRDB
import TidemarkWire

/// Values that a migration has written into columns that it added, in scopes that are not filled yet: there a snapshot
/// would bring whole rows over them. They become edits at once; in a filled scope a ``Backfill`` decides.
struct NewColumns {
    let db: Database
    let shape: TableSchema
    /// The columns that the table had before.
    let known: [String]

    func writeEdits() throws {
        let added = shape.data.indices.filter { index in
            !known.contains { $0.isSameName(as: shape.data[index].name) }
        }
        guard !added.isEmpty else { return }
        for scope in try ScopeRecord.begun(db) where shape.rule.mayHaveRows(in: scope) {
            guard try !ScopeRecord.read(db, scope).isFilled else { continue }
            for (key, row) in try written(scope, added) { try writeEdit(key, row, scope, added) }
        }
    }

    private func written(_ scope: Scope, _ added: [Int]) throws -> [(key: [Cell], row: [Cell])] {
        let table = RecordTable(shape)
        var written: [(key: [Cell], row: [Cell])] = []
        var last: [Cell]?
        repeat {
            last = try ServerRows(shape: shape, scope: scope).step(db, from: last) { id, cells in
                guard added.contains(where: { cells[$0] != shape.data[$0].unwrittenCell }),
                    let key = shape.key(of: id), try table.shadow(db, key) == nil, try table.row(db, key) != nil
                else { return }
                written.append((key, cells))
            }
        } while last != nil
        return written
    }

    private func writeEdit(_ key: [Cell], _ row: [Cell], _ scope: Scope, _ added: [Int]) throws {
        var shadow = Shadow(state: .known, cells: row)
        for index in added {
            shadow.cells[index] = shape.data[index].unwrittenCell
            // The edit was made without a look at the server's value.
            shadow.bases[shape.data[index].name] = 0
        }
        if shape.isScopedByColumn { (shadow.scope, shadow.routingScope) = (scope.name, scope.name) }
        try RecordTable(shape).writeShadow(db, key, shadow)
        try RecordTable(shape).mark(db, key)
    }
}
