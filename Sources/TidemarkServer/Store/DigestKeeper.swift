import TidemarkCore
package import TidemarkWire

/// Keeps the digests of a scope's entities in step with the rows that one transaction appends: loaded when an entity is
/// first touched, stored once at the end. Every store does it by this, so that all keep the same numbers.
package struct DigestKeeper {
    private struct Entry {
        let entity: String
        let prefix: SipHash
        var digest: EntityDigest
    }

    private var kept: [EntityKey: Entry] = [:]

    package init() {}

    /// A state record's row was replaced by another one, each as canonical JSON; `nil` stands for none.
    ///
    /// - Parameter load: the entity's digest as it was last stored; `nil` where it never was.
    package mutating func replace(
        _ entity: String, _ record: RecordID, _ old: [UInt8]?, with new: [UInt8]?, load: () throws -> [UInt8]?
    ) throws {
        if old == nil, new == nil { return }
        // Taken out while it changes: a second reference would copy it.
        let key = EntityKey(entity)
        var kept = try self.kept.removeValue(forKey: key) ?? Self.load(entity, load)
        defer { self.kept[key] = kept }
        var text = record.text
        let number = text.withUTF8 { CellHash.record(kept.prefix, id: UnsafeRawBufferPointer($0)) }
        try Self.withBytes(old) { old in
            try Self.withBytes(new) { new in try kept.digest.replace(number, old, with: new) }
        }
    }

    /// The digests of the entities that were touched, to be stored.
    package var stored: [(entity: String, sums: [UInt8])] { kept.values.map { ($0.entity, $0.digest.stored()) } }

    /// The digest of one entity as it would be stored now; `nil` where it was not touched.
    package func stored(of entity: String) -> [UInt8]? { kept[EntityKey(entity)]?.digest.stored() }

    private static func load(_ entity: String, _ load: () throws -> [UInt8]?) throws -> Entry {
        let digest = try load().map { try EntityDigest(kept: $0) } ?? EntityDigest()
        return Entry(entity: entity, prefix: CellHash.prefix(entity: entity), digest: digest)
    }

    private static func withBytes<T>(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) throws -> T) throws -> T {
        guard let bytes else { return try body(nil) }
        return try bytes.withUnsafeBytes { try body($0) }
    }
}

extension EntityDigest {
    /// Takes back what a store was given to keep.
    init(kept bytes: [UInt8]) throws(Problem) {
        guard let digest = EntityDigest(stored: bytes) else {
            throw Problem(.internalError, "The store's digests cannot be read.")
        }
        self = digest
    }
}
