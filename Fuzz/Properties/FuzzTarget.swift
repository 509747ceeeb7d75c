package import TidemarkWire

/// A family of decoders, and what has to hold for whatever bytes come to it.
///
/// The same properties are held against inputs that a fuzzer grows from coverage (`make fuzz`) and against seeded
/// mutations of the corpus in the ordinary tests.
package struct FuzzTarget: Sendable {
    /// The folder of its corpus.
    package let name: String
    private let property: @Sendable (UnsafeRawBufferPointer) throws -> Void

    package init(_ name: String, _ property: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void) {
        self.name = name
        self.property = property
    }

    /// Throws ``BrokenProperty`` where the property does not hold; a trap is a fault of its own.
    package func check(_ input: UnsafeRawBufferPointer) throws { try property(input) }

    /// Those that need neither a database nor a server.
    package static let all = json + messages + tokens + texts + stored + bytes
}

/// What did not hold.
package struct BrokenProperty: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// States what has to hold.
package func hold(_ condition: Bool, _ what: @autoclosure () -> String) throws(BrokenProperty) {
    if !condition { throw BrokenProperty(description: what()) }
}

/// Reads a whole document; `nil` where it is refused, which is always allowed.
package func read<T>(
    _ input: UnsafeRawBufferPointer, _ body: (inout JSONReader) throws(JSONError) -> T
) -> T? {
    var reader = JSONReader(input)
    do throws(JSONError) {
        let value = try body(&reader)
        try reader.finish()
        return value
    } catch { return nil }
}

/// Reads back what was written, which must never be refused.
package func readBack<T>(
    _ bytes: [UInt8], _ body: (inout JSONReader) throws(JSONError) -> T
) throws(BrokenProperty) -> T {
    guard let value = bytes.withUnsafeBytes({ read($0, body) }) else {
        throw BrokenProperty(description: "what was written is refused: \(String(decoding: bytes, as: UTF8.self))")
    }
    return value
}

extension UnsafeRawBufferPointer {
    /// The input in two parts, cut where its first byte says.
    package var halves: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) {
        guard let first else { return (self, self) }
        let rest = UnsafeRawBufferPointer(rebasing: dropFirst())
        let cut = rest.count * Int(first) / 256
        return (UnsafeRawBufferPointer(rebasing: rest[..<cut]), UnsafeRawBufferPointer(rebasing: rest[cut...]))
    }

    package var text: String { String(decoding: self, as: UTF8.self) }
}
