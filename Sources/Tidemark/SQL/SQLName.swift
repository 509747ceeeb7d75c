import TidemarkWire

/// The name of a table or a column, compared as SQLite compares names: byte by byte, but for the case of ASCII letters.
/// `note` and `NOTE` are one table; `é` in one scalar and in two are two, although Swift's `String` calls them equal.
struct SQLName: Hashable, Sendable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (lhs: SQLName, rhs: SQLName) -> Bool { lhs.text.isSameName(as: rhs.text) }

    func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(Identifier.lowered(byte)) }
    }
}

extension String {
    /// Whether a table of this name is one of SQLite's own or the library's.
    var isReservedTable: Bool { ["tidemark_", "sqlite_"].contains(where: beginsLike) }

    /// Whether a column of this name would be taken for one of the library's, or for a member of the wire's.
    var isReservedColumn: Bool { ["tidemark_", "$"].contains(where: beginsLike) }

    private func beginsLike(_ prefix: String) -> Bool {
        String(decoding: utf8.prefix(prefix.utf8.count), as: UTF8.self).isSameName(as: prefix)
    }

    /// Whether SQLite takes the two for one name.
    func isSameName(as other: String) -> Bool { Identifier.isSameName(self, other) }
}

/// Something for each of several tables or columns, found by a name in whichever case it comes: the app's, the file's
/// or another device's.
struct ByName<Element> {
    private var elements: [SQLName: Element] = [:]

    var values: Dictionary<SQLName, Element>.Values { elements.values }
    var isEmpty: Bool { elements.isEmpty }

    subscript(_ name: String) -> Element? {
        get { elements[SQLName(name)] }
        set { elements[SQLName(name)] = newValue }
    }
}
