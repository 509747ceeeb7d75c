import TidemarkWire

/// The part of a request that tells the server which objects the store holds.
enum Delta: Hashable, Sendable {
    /// Nothing: the complete list comes.
    case nothing
    /// The objects by their ids and times, as the header spells them.
    case held(String)
    /// The time of the last fetch.
    case since(Int64)

    var header: String? {
        switch self {
        case .nothing: nil
        case .held(let map): map
        case .since(let time): "\"\(time)\""
        }
    }
}

/// The map form of the header as it grows: `{"conf0":"1464946487123"}`.
struct DeltaMap {
    private var writer = JSONWriter(capacity: 256)
    private let limit: Int
    /// Whether it has more bytes than the header may have.
    private(set) var isTooLarge = false

    init(limit: Int) {
        self.limit = limit
        writer.raw("{")
    }

    mutating func append(_ id: String, _ time: Int64) {
        if writer.bytes.count > 1 { writer.raw(",") }
        writer.asciiString(id)
        writer.raw(":\"")
        writer.integer(time)
        writer.raw("\"")
        isTooLarge = writer.bytes.count >= limit
    }

    var text: String { String(decoding: writer.bytes, as: UTF8.self) + "}" }
}
