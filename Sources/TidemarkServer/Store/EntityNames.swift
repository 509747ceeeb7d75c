import TidemarkWire

/// The entities of a scope, each under the one spelling that its log has: names that differ only in the case of ASCII
/// letters are one entity, as they are one table for SQLite, and the first one that came is kept for all.
public struct EntityNames: Hashable, Sendable {
    /// The names, in the order in which they came.
    public private(set) var all: [String] = []

    /// None.
    public init() {}

    /// Takes names from the text in which a store keeps them.
    public init(stored text: String) {
        all = text.unicodeScalars.split(separator: "\n").map { String($0) }
    }

    /// The names as one text: none of them holds a line feed.
    public var stored: String { all.joined(separator: "\n") }

    /// How the log spells an entity's name; `nil` where it has none of its rows.
    public func spelling(of name: String) -> String? { all.first { Identifier.isSameName($0, name) } }

    /// Adds the name of a row that is appended; answers whether it is a new one. An idmap has none.
    public mutating func insert(_ name: String) -> Bool {
        guard !name.isEmpty, spelling(of: name) == nil else { return false }
        all.append(name)
        return true
    }

    /// Compares bytes, never Unicode equivalence.
    public static func == (lhs: EntityNames, rhs: EntityNames) -> Bool {
        lhs.all.elementsEqual(rhs.all) { $0.hasSameBytes(as: $1) }
    }
}
