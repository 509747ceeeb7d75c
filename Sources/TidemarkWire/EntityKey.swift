/// An entity's name as names of entities are compared: as SQLite compares those of tables, letters of ASCII without
/// regard to their case, and everything else byte by byte. (Swift's `String` would call two names equal that are not.)
package struct EntityKey: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(_ name: String) { bytes = name.utf8.map(Identifier.lowered) }

    /// The name in its lower-case spelling, for what is kept of it and never shown.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}

extension Identifier {
    /// Whether two names are one entity's.
    package static func isSameEntity(_ left: String, _ right: String) -> Bool {
        isSameEntity(left.utf8, right.utf8)
    }

    /// Whether two names are one entity's, each by its bytes.
    package static func isSameEntity(_ left: some Sequence<UInt8>, _ right: some Sequence<UInt8>) -> Bool {
        left.elementsEqual(right) { lowered($0) == lowered($1) }
    }

    /// A letter of ASCII in lower case; any other byte as it is.
    package static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }
}
