package import TidemarkWire

/// Ids that a server gives in the place of temporary ones: made of the temporary id's whole name, so the same record
/// gets the same id whenever it is asked for, whatever was lost or put back in between, and no other record ever gets
/// it. Nothing counts, so nobody can move what others get.
package enum AssignedID {
    /// Integer keys: sixteen digits, which every reader of JSON keeps exactly (RFC 8259, section 6).
    package static let integers: ClosedRange<Int64> = 1 << 52...1 << 53 - 1

    /// Whether a server could have given an id: a device brings no others of its own (W58).
    package static func matches(_ text: String) -> Bool {
        if let number = TemporaryShape.integer(text) { return integers.contains(number) }
        let bytes = Array(text.utf8)
        guard bytes.count == 36 else { return false }
        return bytes.enumerated().allSatisfy { index, byte in
            switch index {
            case 8, 13, 18, 23: byte == UInt8(ascii: "-")
            case 14: byte == UInt8(ascii: "8")
            case 19: "89ab".utf8.contains(byte)
            default: UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || UInt8(ascii: "a")...UInt8(ascii: "f") ~= byte
            }
        }
    }

    /// The id of the record that a device called `temporary`, in that one's form.
    ///
    /// - Parameters:
    ///   - owner: whose temporary id it is: the user, the device and the entity.
    ///   - attempt: 0, and one more where the id before it is another record's: an attacker can find two names of one
    ///     id among 2^52 integers.
    package static func make(for temporary: RecordID, of owner: [String], attempt: Int) -> RecordID? {
        var hash = SHA256()
        for part in owner + [temporary.text, String(attempt)] {
            // Lengths keep the parts apart.
            hash.update(Array("\(part.utf8.count):\(part)".utf8))
        }
        var bytes = Array(hash.finish().prefix(16))
        guard TemporaryShape.integer(temporary.text) != nil else {
            bytes[6] = 0x80 | bytes[6] & 0x0f
            bytes[8] = 0x80 | bytes[8] & 0x3f
            return RecordID(UUIDv7.text(bytes))
        }
        let word = bytes.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        return RecordID(String(1 << 52 | Int64(word >> 12)))
    }
}
