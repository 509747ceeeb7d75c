import GRDB
import TidemarkCore
import TidemarkWire

/// Records that show an id which a lost history had given, and which the present one may have given to another record.
///
/// What the server says of a record means the present holder: it is left, and what was said in the lost history the
/// server says anew. What was done to the record here, sent or not, means the former holder, and goes with it. So a
/// column, a document and a row that is parked are all drawn again, out of what the server says, what is sealed, and
/// what was edited since.
struct NamedAnew {
    let db: Database
    let layout: Layout
    let identity: Identity
    /// Whose ids are given anew.
    let entity: String
    let successor: (RecordID) throws -> RecordID?

    /// One of them, as it was before the names change.
    struct Held {
        var table: RecordTable
        var key: [Cell]
        var id: RecordID
        var scope: String
        var current: [Cell]
        /// The same, were all of it done here.
        var renamed: [Cell]
        var isParked: Bool
        var edits: Edits
    }

    /// Called before sealed operations come to mean the new ids.
    func held() throws -> [Held] {
        var held: [Held] = []
        for shape in layout.shapes {
            let references = identity.references(in: shape).filter { $0.entity == entity }
            guard references.contains(where: { $0.place.field != nil }) else { continue }
            let keys = shape.key.map(\.sql).joined(separator: ", ")
            let found = try Query(db, "SELECT \(keys) FROM \(shape.shadowSQL)")
                .rows(db) { $0.cells(0..<shape.key.count) }
            for key in found {
                if let one = try self.held(RecordTable(shape), key, references) { held.append(one) }
            }
        }
        return held
    }

    private func held(_ table: RecordTable, _ key: [Cell], _ references: [Reference]) throws -> Held? {
        let shape = table.shape
        guard let id = shape.recordID(key), let shadow = try table.shadow(db, key) else { return nil }
        let scope = try table.scopeName(db, key)
        let row = try table.row(db, key)
        let parked = row == nil && !shadow.isGone ? try Parked.cells(db, shape, id, scope) : nil
        guard let current = row ?? parked else { return nil }
        let renamed = try renamed(current, shape, references)
        guard renamed != current else { return nil }
        let operation = try Outbox.overlay(db, entity: shape.name, record: id.text, scope: scope)
        var edits = Edits(shape: shape, shadow: shadow, operation: operation, current: current, reserved: [])
        if case .fields(let fields) = edits {
            edits = .fields(Dictionary(uniqueKeysWithValues: fields.keys.map { ($0, renamed[$0]) }))
        }
        return Held(
            table: table, key: key, id: id, scope: scope, current: current, renamed: renamed, isParked: row == nil,
            edits: edits)
    }

    /// Called when sealed operations mean the new ids.
    func draw(_ held: [Held]) throws {
        for one in held {
            guard let shadow = try one.table.shadow(db, one.key) else { continue }
            let shape = one.table.shape
            let operation = try Outbox.overlay(db, entity: shape.name, record: one.id.text, scope: one.scope)
            let drawn = shadow.drawn(with: operation, one.edits, shape: shape, current: one.renamed)
            if let drawn, drawn != one.current { try put(drawn, one) }
        }
        for shape in Set(held.map(\.table.shape)) { try Installation.refreshPlaces(db, shape) }
    }

    private func put(_ cells: [Cell], _ one: Held) throws {
        let shape = one.table.shape
        guard !one.isParked else {
            return try Parked.put(
                db, shape, record: one.id.text, scope: one.scope, version: nil, cells: cells,
                reason: "Waiting for its place.", contends: true, fresh: true)
        }
        try one.table.writeOrPark(db, one.key, one.id, cells, scope: one.scope)
    }

    private func renamed(_ cells: [Cell], _ shape: TableShape, _ references: [Reference]) throws -> [Cell] {
        func replacement(_ value: IDValue) throws -> IDValue? {
            try RecordID(value.text).flatMap(successor).map(value.replaced(by:))
        }
        var renamed = cells
        for reference in references {
            guard let index = reference.place.field.flatMap(shape.dataIndex) else { continue }
            switch reference.place {
            case .field:
                guard let new = try IDValue(cells[index].value).flatMap(replacement) else { continue }
                renamed[index] = Cell(new.value)
            case .document(_, let path):
                guard case .text(let bytes) = renamed[index], let path = JSONPath(path),
                    let new = try path.replacing(in: bytes, replacement)
                else { continue }
                renamed[index] = .text(new)
            case .key: continue
            }
        }
        return renamed
    }
}
