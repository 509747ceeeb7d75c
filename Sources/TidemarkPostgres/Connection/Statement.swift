/// A statement as it is written, under the name that it is prepared by: once on each connection, at its first use.
struct Statement: Hashable, Sendable {
    let name: String
    let sql: String

    /// This prefix begins the names of statements that are made of the catalogue's names; their answers have one form.
    static let shapePrefix = "shape "

    init(_ name: String, _ sql: String) { (self.name, self.sql) = (name, sql) }

    static func == (lhs: Statement, rhs: Statement) -> Bool { lhs.name == rhs.name }

    func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// A value for a place in a statement. All of them travel as bytes; the server knows from the statement what they are.
enum Parameter: Hashable, Sendable {
    case null
    /// A `bigint`.
    case integer(Int64)
    /// A `boolean`.
    case flag(Bool)
    /// A `text`, or its UTF-8 where the statement has a `bytea`.
    case text(String)
    /// A `bytea`.
    case bytes([UInt8])
    /// A `bigint[]`.
    case integers([Int64])
    /// A `text[]`.
    case texts([String])
    /// An array of values of a type, by PostgreSQL's number of it.
    case array([Parameter], of: Int32)

    static func optional(_ bytes: [UInt8]?) -> Parameter { bytes.map { .bytes($0) } ?? .null }
    static func optional(_ integer: Int64?) -> Parameter { integer.map { .integer($0) } ?? .null }
}

/// A statement with its values.
struct Request {
    let statement: Statement
    let parameters: [Parameter]

    init(_ statement: Statement, _ parameters: Parameter...) {
        self.statement = statement
        self.parameters = parameters
    }

    init(_ statement: Statement, _ parameters: [Parameter]) {
        self.statement = statement
        self.parameters = parameters
    }
}

/// The values of one request as libpq takes them: one run of bytes, kept from request to request.
struct ParameterBuffer {
    private var bytes: [UInt8] = []
    /// Where each value begins; `nil` for NULL.
    private var starts: [Int?] = []
    private var lengths: [Int32] = []
    private var formats: [Int32] = []

    mutating func fill(_ parameters: [Parameter]) {
        bytes.removeAll(keepingCapacity: true)
        starts.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        for parameter in parameters {
            let start = bytes.count
            append(parameter)
            if case .null = parameter { starts.append(nil) } else { starts.append(start) }
            lengths.append(Int32(truncatingIfNeeded: bytes.count - start))
        }
        // An empty value, too, has to stand somewhere: without a place it would be NULL.
        bytes.append(0)
        while formats.count < starts.count { formats.append(1) }
    }

    private mutating func append(_ parameter: Parameter) {
        switch parameter {
        case .null: break
        case .integer(let value): append(value)
        case .flag(let value): bytes.append(value ? 1 : 0)
        case .text(let value): bytes.append(contentsOf: value.utf8)
        case .bytes(let value): bytes.append(contentsOf: value)
        case .integers(let values):
            appendHead(values.count, of: 20)
            for value in values { appendElement { $0.append(value) } }
        case .texts(let values):
            appendHead(values.count, of: 25)
            for value in values { appendElement { $0.bytes.append(contentsOf: value.utf8) } }
        case .array(let values, let type):
            appendHead(values.count, of: type)
            for value in values {
                if case .null = value { append(Int32(-1)) } else { appendElement { $0.append(value) } }
            }
        }
    }

    /// Appends a value behind its length.
    private mutating func appendElement(_ value: (inout ParameterBuffer) -> Void) {
        let place = bytes.count
        append(Int32(0))
        value(&self)
        let length = Int32(truncatingIfNeeded: bytes.count - place - 4)
        withUnsafeBytes(of: length.bigEndian) { bytes.replaceSubrange(place..<place + 4, with: $0) }
    }

    private mutating func append(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// Appends an array's header: one dimension, elements of a type, counted from 1. Whether there is a NULL among them
    /// PostgreSQL finds out by itself.
    private mutating func appendHead(_ count: Int, of type: Int32) {
        append(Int32(count > 0 ? 1 : 0))
        append(Int32(0))
        append(type)
        guard count > 0 else { return }
        append(Int32(truncatingIfNeeded: count))
        append(Int32(1))
    }

    func withPointers<Result>(
        _ body: (
            Int32, UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?
        ) -> Result
    ) -> Result {
        bytes.withUnsafeBytes { bytes in
            let base = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            let places = starts.map { start in start.flatMap { base?.advanced(by: $0) } }
            return places.withUnsafeBufferPointer { places in
                lengths.withUnsafeBufferPointer { lengths in
                    formats.withUnsafeBufferPointer { formats in
                        body(
                            Int32(truncatingIfNeeded: places.count), places.baseAddress, lengths.baseAddress,
                            formats.baseAddress)
                    }
                }
            }
        }
    }
}
