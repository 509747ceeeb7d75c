/// The part of the data that a device follows: the unit of permission, of order and of checkpoints.
///
/// A scope name is 1–128 characters of `A–Z a–z 0–9 . _ : @ -`, for example `workspace:123` (Protocol.md). Entities
/// that are declared to be in a sub-scope have a log and checkpoints of their own there: `workspace:123~media`, with
/// the permission of `workspace:123` (A3).
public struct Scope: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The name as it stands on the wire.
    public let name: String

    /// The character between a scope's name and its sub-scope's.
    package static let subscopeMark: Character = "~"
    private static let subscopeByte = UInt8(ascii: "~")

    /// Makes a scope from its name, or `nil` where the name is not of the form above.
    public init?(_ name: String) {
        guard Identifier.isScope(name) else { return nil }
        self.name = name
    }

    /// The name, as in ``name``.
    public var description: String { name }

    /// The sub-scope's own name, `media`; `nil` for a scope itself.
    public var subscope: String? {
        name.utf8.split(separator: Self.subscopeByte, maxSplits: 1).dropFirst().first.map { String(Substring($0)) }
    }

    /// The scope that this is a part of, whose permission it has; a scope itself is its own.
    public var parent: Scope {
        guard let mark = name.utf8.firstIndex(of: Self.subscopeByte) else { return self }
        return Scope(unchecked: String(name[..<mark]))
    }

    /// The sub-scope of that name; `nil` stands for the scope itself. Of a sub-scope: the one beside it.
    ///
    /// - Returns: `nil` where the name is not of the form `[A-Za-z0-9_-]{1,32}`, or the whole is too long.
    public func appending(subscope: String?) -> Scope? {
        guard let subscope else { return parent }
        return Scope("\(parent.name)\(Self.subscopeMark)\(subscope)")
    }

    /// Stands before the names of all sub-scopes, and behind that of the scope itself.
    package var beforeSubscopes: Scope { Scope(unchecked: "\(parent.name)\(Self.subscopeMark)") }

    private init(unchecked name: String) { self.name = name }

    /// Orders scopes by the bytes of their names, the order in which a server locks them.
    public static func < (lhs: Scope, rhs: Scope) -> Bool { lhs.name.utf8.lexicographicallyPrecedes(rhs.name.utf8) }
}

extension Scope: ExpressibleByStringLiteral {
    /// Makes a scope from a literal in the source; a malformed one is a programming error and stops the program.
    public init(stringLiteral name: StringLiteralType) {
        guard let scope = Scope(name) else { preconditionFailure("'\(name)' is not a scope name") }
        self = scope
    }
}

/// The identity of a record within its entity: 1–128 bytes of UTF-8 without control characters.
///
/// Two ids are equal only if their bytes are: `"é"` written in one scalar and in two are two ids, as they are for
/// SQLite and PostgreSQL, although Swift's `String` calls them equal.
public struct RecordID: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The id as it stands on the wire.
    public let text: String

    /// Makes a record id, or `nil` where the text is empty, longer than 128 bytes or holds a control character.
    public init?(_ text: String) {
        guard Identifier.isRecordID(text) else { return nil }
        self.text = text
    }

    /// The id, as in ``text``.
    public var description: String { text }

    /// Compares bytes, never Unicode equivalence.
    public static func == (lhs: RecordID, rhs: RecordID) -> Bool { lhs.text.hasSameBytes(as: rhs.text) }

    /// Orders by bytes, the order in which every device decides between candidates for one unique value.
    public static func < (lhs: RecordID, rhs: RecordID) -> Bool {
        lhs.text.utf8.lexicographicallyPrecedes(rhs.text.utf8)
    }

    /// Hashes bytes, in step with `==`.
    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: .init($0)) }
        hasher.combine(UInt8.max)  // because several in a row must not run together; no UTF-8 has it
    }
}

extension RecordID: ExpressibleByStringLiteral {
    /// Makes an id from a literal in the source; a malformed one is a programming error and stops the program.
    public init(stringLiteral text: StringLiteralType) {
        guard let id = RecordID(text) else { preconditionFailure("'\(text)' is not a record id") }
        self = id
    }
}

/// A change's place in its scope's log: assigned by the server at commit, strictly increasing in commit order.
public typealias Version = Int64

/// The grammar of every name on the wire (Protocol.md); each is checked once, where it enters.
package enum Identifier {
    package static let scopeLimit = 128
    package static let subscopeLimit = 32
    package static let entityLimit = 128
    package static let recordLimit = 128
    package static let clientRange = 8...64

    package static func isScope(_ text: String) -> Bool {
        guard (1...scopeLimit).contains(text.utf8.count) else { return false }
        let parts = text.utf8.split(separator: UInt8(ascii: "~"), maxSplits: 1, omittingEmptySubsequences: false)
        return !parts[0].isEmpty && parts[0].allSatisfy { isWord($0) || ".:@-".utf8.contains($0) }
            && (parts.count == 1 || isSubscope(parts[1]))
    }

    /// A sub-scope's own name.
    package static func isSubscope(_ text: String) -> Bool { isSubscope(text.utf8[...]) }

    /// The form of that name, for those who chose another one.
    package static let subscopeHint = "1 to \(subscopeLimit) letters, digits, '_' and '-'"

    private static func isSubscope(_ text: Substring.UTF8View) -> Bool {
        (1...subscopeLimit).contains(text.count) && text.allSatisfy { isWord($0) || $0 == UInt8(ascii: "-") }
    }

    package static func isEntity(_ text: String) -> Bool {
        isPrintable(text, limit: entityLimit) && text.utf8.first != blank && text.utf8.last != blank
    }

    /// The rule for an entity's name, told to those who chose a name that breaks it.
    package static let entityHint =
        "1 to \(entityLimit) bytes of UTF-8 without control characters, and no blank at either end"

    package static func isRecordID(_ text: String) -> Bool { isPrintable(text, limit: recordLimit) }

    private static func isPrintable(_ text: String, limit: Int) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            (1...limit).contains(bytes.count) && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
        }
    }

    private static let blank = UInt8(ascii: " ")

    package static func isClient(_ text: String) -> Bool {
        clientRange.contains(text.utf8.count)
            && text.utf8.allSatisfy { isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") }
    }

    /// Lanes are random ids that devices draw; they share the grammar of client ids.
    package static func isLane(_ text: String) -> Bool { isClient(text) }

    private static func isWord(_ byte: UInt8) -> Bool { isLetter(byte) || isDigit(byte) || byte == UInt8(ascii: "_") }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) }
}
