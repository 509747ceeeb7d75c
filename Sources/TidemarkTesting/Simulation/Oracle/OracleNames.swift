import TidemarkServer
import TidemarkWire

/// The ids that the server has given to records in the place of temporary ones. The oracle uses the server's from the
/// moment it gives them, whatever stands in a device's file by then.
struct OracleNames {
    private var records: [OracleKey: String] = [:]
    /// References to them.
    private var values: [Value: Value] = [:]

    var isEmpty: Bool { records.isEmpty }

    subscript(key: OracleKey) -> OracleKey {
        records[key].map { OracleKey(entity: key.entity, record: $0) } ?? key
    }

    subscript(value: Value) -> Value { values[value] ?? value }

    /// The record's names in the files of devices, in an order.
    func all(of key: OracleKey) -> [String] {
        let former = records.filter { $0.key.entity == key.entity && $0.value == key.record }.map(\.key.record)
        return [key.record] + former.sorted()
    }

    /// Reads an idmap of the log.
    mutating func learn(_ payload: [UInt8]) throws {
        let members = try DataObject(stored: [UInt8(ascii: "{")] + payload + [UInt8(ascii: "}")]).values
        guard case .text(let entity)? = members["entity"], case .text(let former)? = members["tempId"],
            case .text(let id)? = members["id"]
        else { return }
        records[OracleKey(entity: entity, record: former)] = id
        values[.text(former)] = .text(id)
        // A document that holds nothing else.
        values[.text("[\(former)]")] = .text("[\(id)]")
        if let former = Int64(former), let id = Int64(id) { values[.integer(former)] = .integer(id) }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// Whether temporary ids that two users may have stand for records of a table, or in its references.
    func isUnnamed(_ table: OracleTable) -> Bool {
        hasSharedNames && (table.hasServerIDs || table.parents.contains { tables[$0.table]?.hasServerIDs ?? false })
    }

    /// The log has an id for what had a temporary one.
    func learn(_ payload: [UInt8]) throws {
        try names.learn(payload)
        for (cell, count) in allowed where names[cell.key] != cell.key || cell.value.map({ names[$0] }) != cell.value {
            let renamed = OracleCell(key: names[cell.key], column: cell.column, value: cell.value.map { names[$0] })
            allowed[cell] = nil
            allowed[renamed, default: 0] += count
        }
        for device in devices.indices { devices[device].rename(names) }
        lost = Set(lost.map { names[$0] })
        verdicts.tooLarge = Set(verdicts.tooLarge.map { names[$0] })
        verdicts.refused = Set(verdicts.refused.map { names[$0] })
    }
}

extension OracleDevice {
    mutating func rename(_ names: OracleNames) {
        sight.rows = names.renamed(sight.rows) { $0.map { names[$0] } }
        sight.shadows = names.renamed(sight.shadows) { $0?.map { names[$0] } }
        sight.uncaptured = names.renamed(sight.uncaptured) { $0?.map { names[$0] } }
        sight.quarantined = Set(sight.quarantined.map { names[$0] })
        unfounded = Set(unfounded.map { names[$0] })
        bounds = bounds.mapValues { names.renamed($0) { $0 } }
        written = Set(
            written.map { cell in
                OracleCell(key: names[cell.key], column: cell.column, value: cell.value.map { names[$0] })
            })
        writes = names.renamed(writes) { columns in
            columns.mapValues { write in
                var write = write
                write.value = write.value.map { names[$0] }
                write.row = write.row.map { names[$0] }
                return write
            }
        }
    }
}

extension OracleNames {
    fileprivate func renamed<Content>(
        _ records: [OracleKey: Content], _ rename: (Content) -> Content
    ) -> [OracleKey: Content] {
        var renamed: [OracleKey: Content] = [:]
        // One that has the name already comes first, then the one with the smallest: the same in every process.
        for (key, content) in records.sorted(by: { $0.key < $1.key }) {
            let name = self[key]
            if name == key || renamed[name] == nil { renamed[name] = rename(content) }
        }
        return renamed
    }
}
