public import TidemarkWire

/// One condition of a query: objects whose member has this value.
public struct ObjectFilter: Hashable, Sendable {
    /// The member's name.
    public var member: String
    /// The value; `.null` for objects that do not have the member.
    public var value: Value

    /// Makes a condition, such as `ObjectFilter("room", "a")` or `ObjectFilter("done", 1)`. A member that the server
    /// spells as `true` and `false` is compared with those words as texts.
    public init(_ member: String, _ value: Value) {
        self.member = member
        self.value = value
    }

    /// The value as the query of an address spells it; `nil` for bytes, which no query can ask for.
    fileprivate var text: String? {
        switch value {
        case .null: "null"
        case .integer(let integer): String(integer)
        case .real(let real): real.description
        case .text(let text): text
        case .blob: nil
        }
    }
}

/// A class, and which of its objects are meant.
struct ObjectQuery: Hashable, Sendable {
    /// Members of the query that mean something else to the server.
    private static let reserved: Set<String> = ["scope", "limit", "cursor"]

    let name: String
    let items: [TransportRequest.QueryItem]
    /// The one spelling of what is asked for, however the filters were ordered; empty for all objects of the class.
    let text: String

    var isWhole: Bool { items.isEmpty }

    init(_ name: String, _ filters: [ObjectFilter] = []) throws(ObjectStoreError) {
        guard Identifier.isEntity(name) else {
            throw Self.invalid("The class's name is not of the allowed form.", Identifier.entityHint + ".")
        }
        var words: [String: TransportRequest.QueryItem] = [:]
        for filter in filters {
            guard let value = filter.text, !filter.member.isEmpty, !Self.reserved.contains(filter.member) else {
                throw Self.invalid(
                    "A filter that no query can hold.", "Filter by text, numbers or null, and not by a reserved name.")
            }
            let word = "\(PercentEncoding.encoded(filter.member))=\(PercentEncoding.encoded(value))"
            words[word] = TransportRequest.QueryItem(filter.member, value)
        }
        guard words.count <= Limits.filters else {
            throw Self.invalid("\(words.count) filters.", "Filter by \(Limits.filters) members at most.")
        }
        let sorted = words.sorted { $0.key < $1.key }
        self.name = name
        items = sorted.map(\.value)
        text = sorted.map(\.key).joined(separator: "&")
    }

    private static func invalid(_ detail: String, _ hint: String) -> ObjectStoreError {
        ObjectStoreError(.queryInvalid, detail, hint: hint)
    }
}
