import TidemarkWire

/// A table's name, compared as SQLite compares names: byte by byte, but for the case of ASCII letters. `note` and
/// `NOTE` are one table; `é` in one scalar and in two are two, although Swift's `String` calls them equal.
struct TableName: Hashable, Sendable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (lhs: TableName, rhs: TableName) -> Bool { lhs.text.isSameName(as: rhs.text) }

    func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(Identifier.lowered(byte)) }
    }
}

extension String {
    /// Whether a table of this name is one of SQLite's own or the library's.
    var isReservedTable: Bool {
        ["tidemark_", "sqlite_"].contains {
            String(decoding: utf8.prefix($0.utf8.count), as: UTF8.self).isSameName(as: $0)
        }
    }

    /// Whether SQLite takes the two for one name.
    func isSameName(as other: String) -> Bool { Identifier.isSameEntity(self, other) }
}

/// Something for each of several tables, found by a name in whichever case it comes: the app's, the file's or another
/// device's.
struct ByTable<Element> {
    private var elements: [TableName: Element] = [:]

    var values: Dictionary<TableName, Element>.Values { elements.values }
    var isEmpty: Bool { elements.isEmpty }

    subscript(_ name: String) -> Element? {
        get { elements[TableName(name)] }
        set { elements[TableName(name)] = newValue }
    }
}
