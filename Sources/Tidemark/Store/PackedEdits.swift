import GRDB
import TidemarkWire

/// The operations of a scope in blocks, for one transaction that asks for many records: each block is read once to find
/// out which records it names, and again where one of them is asked for.
final class PackedEdits {
    private struct Place {
        var version: Version
        var blocks: [Int64]
    }

    private let db: Database
    private let scope: Scope
    /// Blocks with versions above this have been looked at.
    private var floor: Version = .max
    private var places: [RecordName: Place] = [:]
    /// The block that was read last: records that are asked for one after the other often lie in one.
    private var last: (id: Int64, lane: String, operations: [OutboxBlock.Operation])?

    init(_ db: Database, _ scope: Scope) {
        (self.db, self.scope) = (db, scope)
    }

    /// Whether the server took an operation on a record at a version above `base`.
    func contains(_ record: RecordName, after base: Version) throws -> Bool {
        try look(after: base)
        return places[record].map { $0.version > base } ?? false
    }

    /// The operations on a record that the server took at versions above `base`, oldest first.
    func operations(on record: RecordName, after base: Version) throws -> [OutboxEntry] {
        guard try contains(record, after: base), let place = places[record] else { return [] }
        return try place.blocks.sorted().flatMap { id in
            guard let block = try block(id) else { return [OutboxEntry]() }
            return block.operations.filter { $0.name == record && $0.version > base }
                .map { $0.entry(lane: block.lane) }
        }
    }

    private func block(_ id: Int64) throws -> (lane: String, operations: [OutboxBlock.Operation])? {
        if let last, last.id == id { return (last.lane, last.operations) }
        guard let found = try OutboxHistory.block(db, id) else { return nil }
        last = (id, found.lane, OutboxBlock.operations(found.bytes))
        return last.map { ($0.lane, $0.operations) }
    }

    private func look(after base: Version) throws {
        guard base < floor else { return }
        let blocks = try OutboxHistory.blocks(db, scope, after: base, upTo: floor)
        floor = base
        for (id, bytes) in blocks {
            for operation in OutboxBlock.operations(bytes) {
                var place = places[operation.name] ?? Place(version: 0, blocks: [])
                place.version = max(place.version, operation.version)
                if place.blocks.last != id { place.blocks.append(id) }
                places[operation.name] = place
            }
        }
    }
}
