package import TidemarkWire

/// Large texts travel as the difference to one that both sides know (A9). Places are bytes of UTF-8 in the old text,
/// on scalar boundaries, in ascending order.
package enum TextPatch {
    /// Below this many bytes a text travels whole: a patch would save little and cost both sides a look at the old
    /// text.
    package static let threshold = 2048

    /// The mark by which a result is known to be right: the first 16 bytes of its SHA-256, in hex.
    package static func mark(of text: [UInt8]) -> String {
        var mark: [UInt8] = []
        mark.reserveCapacity(32)
        for byte in SHA256.digest(text).prefix(16) {
            for digit in [byte >> 4, byte & 15] { mark.append(digit < 10 ? 0x30 + digit : 0x57 + digit) }
        }
        return String(decoding: mark, as: UTF8.self)
    }

    /// The patch that makes `new` out of `old`, both UTF-8; `nil` where it would not be clearly smaller than `new`.
    package static func make(field: String, from old: [UInt8], to new: [UInt8]) -> FieldPatch? {
        guard old.count >= threshold, new.count >= threshold else { return nil }
        let splices = TextDifference(old: old, new: new).splices()
        let cost = splices.reduce(80) { $0 + $1.inserted.count + spliceCost }
        guard cost <= new.count / 2 else { return nil }
        return FieldPatch(field: field, splices: splices, hash: mark(of: new))
    }

    /// Bytes that a splice takes on the wire beside its text.
    static let spliceCost = 16

    /// The text that a patch makes of `old`; `nil` where it does not fit, or what comes out is not what its maker had.
    /// Takes whatever came from the wire.
    package static func apply(_ patch: FieldPatch, to old: [UInt8]) -> [UInt8]? {
        guard let new = splice(patch.splices, into: old), mark(of: new) == patch.hash else { return nil }
        return new
    }

    private static func splice(_ splices: [FieldPatch.Splice], into old: [UInt8]) -> [UInt8]? {
        var new: [UInt8] = []
        new.reserveCapacity(old.count + splices.reduce(0) { $0 + $1.inserted.count })
        var position = 0
        for splice in splices {
            guard let at = Int(exactly: splice.at), let deleted = Int(exactly: splice.deleted), deleted >= 0,
                position <= at, at <= old.count, deleted <= old.count - at,
                TextDifference.isBoundary(old, at), TextDifference.isBoundary(old, at + deleted)
            else { return nil }
            new += old[position..<at]
            new += splice.inserted
            position = at + deleted
        }
        new += old[position...]
        return new
    }
}
