import TidemarkWire

/// An edit made here that is not sealed yet: the difference between what is on screen and what would be there
/// without it.
enum LocalDelta: Hashable {
    case none
    /// The row was deleted.
    case deleted
    /// These columns were edited; all of them where the row was made anew.
    case fields([Int: Cell])

    var isEmpty: Bool { self == .none }

    /// The columns that were edited.
    var fields: [Int: Cell] {
        switch self {
        case .none, .deleted: [:]
        case .fields(let fields): fields
        }
    }

    init(shape: TableSchema, shadow: Shadow, operation: Operation?, current: [Cell]?, reserved: Set<Int>) {
        switch (current, shadow.overlaid(with: operation, shape: shape)) {
        case (nil, nil): self = .none
        case (nil, .some): self = .deleted
        case (.some(let current), let expected):
            var fields: [Int: Cell] = [:]
            // Fields that only the server may write never count as edited. OutboxBatcher's edit goes by the same rule.
            for index in current.indices where !reserved.contains(index) && expected?[index] != current[index] {
                fields[index] = current[index]
            }
            self = fields.isEmpty && expected != nil ? .none : .fields(fields)
        }
    }
}

extension Shadow {
    /// The server's row overlaid with an operation in flight; `nil`: no row. A lost edit that is replayed makes none
    /// by itself: nothing is known of the other fields, and what the app inserted over it, it wrote whole.
    func overlaid(with operation: Operation?, shape: TableSchema) -> [Cell]? {
        guard let operation else { return state == .absent ? seed : cells }
        guard operation.setsFields, state != .absent || operation.isInsert else { return nil }
        var result = state == .absent ? shape.data.map(\.defaultCell) : cells
        for (index, cell) in operation.fields.cells(in: shape) { result[index] = cell }
        return result
    }

    /// Returns the row on screen: the server's row overlaid with the operation and the edits.
    func rebased(with operation: Operation?, _ edits: LocalDelta, shape: TableSchema, current: [Cell]?) -> [Cell]? {
        switch edits {
        case .deleted: return nil
        case .none: return operation == nil && state != .known ? seed : overlaid(with: operation, shape: shape)
        case .fields(let fields):
            guard var result = overlaid(with: operation, shape: shape) else { return current }
            for (index, cell) in fields { result[index] = cell }
            return result
        }
    }

    /// Applies a server row; columns that it does not hold stay as they are here.
    mutating func update(with incoming: [Int: Cell], version: Version, shape: TableSchema, current: [Cell]?) {
        var merged = state == .absent ? current ?? shape.data.map(\.defaultCell) : cells
        for (index, cell) in incoming { merged[index] = cell }
        learn(merged)
        bases[Self.seedBase] = nil
        self.version = version
    }

    /// The server's row is this one.
    mutating func learn(_ cells: [Cell]) {
        (state, self.cells) = (.known, cells)
        bases[Self.unknownBase] = nil
    }
}

extension DataObject {
    /// The fields that this device has columns for; those of a newer schema are passed over.
    func cells(in shape: TableSchema) -> [Int: Cell] {
        var cells: [Int: Cell] = [:]
        for field in fields {
            guard let index = shape.dataIndex(canonical: name(field)) else { continue }
            cells[index] = kept(field)
        }
        return cells
    }

    /// The values as people read them, of fields that the file keeps.
    var keptValues: [String: Value] {
        var values: [String: Value] = [:]
        for field in fields {
            guard let cell = kept(field) else { continue }
            // Text that is not UTF-8 is not repaired: the app sees the bytes that it wrote.
            if case .text(let bytes) = cell, !cell.isSendable {
                values[nameString(field)] = .blob(bytes)
            } else {
                values[nameString(field)] = cell.value
            }
        }
        return values
    }

    private func kept(_ field: Field) -> Cell? {
        try? Array(value(field)).reading { (reader: inout JSONReader) throws(JSONError) -> Cell in
            try reader.readKept()
        }
    }
}

extension TableSchema {
    /// A record as the server has it, in all columns of this device: fields that it does not have are at their
    /// defaults, and the one that names the scope says the one that it came in. A restored server may have got back
    /// only a part.
    func whole(_ cells: [Int: Cell], in scope: Scope) -> [Int: Cell] {
        var whole = cells
        for (index, column) in data.enumerated()
        where whole[index] == nil && (column.returnsToDefault || index == scopeIndex) {
            whole[index] = cell(lacking: index, in: scope)
        }
        return whole
    }

    /// Returns this device's value of a column in a record that lacks the field on the server.
    func cell(lacking index: Int, in scope: Scope) -> Cell {
        index == scopeIndex ? placeCell(of: scope) : data[index].defaultCell
    }
}
