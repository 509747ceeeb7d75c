import TidemarkWire

/// The share of one cell in a digest: the product, modulo 2^64, of a number for its record and one for its content. A
/// product lets the other side work out what records that lack a field would add to the sum, had they its default.
package enum CellHash {
    /// A record's number. It is odd, so that two contents never count the same in it.
    package static func record(entity: String, id: UnsafeRawBufferPointer) -> UInt64 {
        record(prefix(entity: entity), id: id)
    }

    /// The hash in progress that all records of an entity have in common: of its name without case, since each side may
    /// write it in a case of its own.
    package static func prefix(entity: String) -> SipHash { prefix(EntityKey(entity).bytes) }

    /// The hash in progress that all values of a field have in common, whatever case a side writes its name in.
    package static func prefix(field name: some Collection<UInt8>) -> SipHash { prefix(Identifier.folded(name)) }

    private static func prefix(_ name: [UInt8]) -> SipHash {
        var hash = SipHash()
        hash.update(name)
        hash.update(byte: 0)
        return hash
    }

    package static func record(_ entity: SipHash, id: UnsafeRawBufferPointer) -> UInt64 {
        var hash = entity
        hash.update(id)
        return hash.finish() | 1
    }

    /// A content's number, by the field's prefix and the value's canonical bytes; 0 for NULL.
    package static func content(_ field: SipHash, _ value: UnsafeRawBufferPointer) -> UInt64 {
        if value.count == 4, value[0] == UInt8(ascii: "n") { return 0 }
        var hash = field
        hash.update(value)
        return hash.finish()
    }
}
