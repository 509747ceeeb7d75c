/// An entity's name as names of entities are compared: as SQLite compares those of tables, letters of ASCII without
/// regard to their case, and everything else byte by byte. (Swift's `String` would call two names equal that are not.)
package struct EntityKey: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(_ name: String) { bytes = Identifier.folded(name.utf8) }

    /// The name in its lower-case spelling, for what is kept of it and never shown.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}

extension Identifier {
    /// Whether two names are one entity's, or one field's.
    package static func isSameName(_ left: String, _ right: String) -> Bool {
        isSameName(left.utf8, right.utf8)
    }

    /// Whether two names are one, each by its bytes.
    package static func isSameName(_ left: some Sequence<UInt8>, _ right: some Sequence<UInt8>) -> Bool {
        left.elementsEqual(right) { lowered($0) == lowered($1) }
    }

    /// A name's bytes, with all letters of ASCII in lower case.
    package static func folded(_ name: some Sequence<UInt8>) -> [UInt8] { name.map(lowered) }

    /// A letter of ASCII in lower case; any other byte as it is.
    package static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }
}
