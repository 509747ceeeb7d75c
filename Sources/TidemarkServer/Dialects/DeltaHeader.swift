package import TidemarkWire

/// The records that a caller holds, as its `x-apiomat-delta` header names them (C2).
package enum DeltaHeader: Hashable, Sendable {
    package static let name = DialectHeader.delta
    package static let deletedName = DialectHeader.deltaDeleted

    /// The caller holds all that there was at the time of its last answer, in milliseconds since 1970.
    case since(Int64)
    /// These records, by the bytes of their ids, each as it was written at a time.
    case held([[UInt8]: Int64])

    /// Reads either form; times with or without quotes.
    package init(_ text: String, limit: Int) throws(Problem) {
        guard text.utf8.count <= limit else {
            throw Problem(.headerTooLarge, "`\(Self.name)` has \(text.utf8.count) bytes where \(limit) are taken.")
        }
        let bytes = Array(text.utf8)
        do throws(JSONError) {
            self = try bytes.withUnsafeBytes { buffer in
                Result { () throws(JSONError) in try Self.read(buffer) }
            }.get()
        } catch {
            throw Problem(.malformedRequest, "In `\(Self.name)`: a timestamp, or a map of ids to such, was expected.")
        }
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) throws(JSONError) -> DeltaHeader {
        var reader = JSONReader(bytes)
        guard reader.peek() == UInt8(ascii: "{") else {
            let time = try time(&reader)
            try reader.finish()
            return .since(time)
        }
        var held: [[UInt8]: Int64] = [:]
        try reader.enterObject()
        while let name = try reader.nextMember() {
            let id = Array(reader.string(name).utf8)
            guard held.updateValue(try time(&reader), forKey: id) == nil else {
                throw JSONError(.duplicateMember, at: name.range.lowerBound)
            }
        }
        try reader.finish()
        return .held(held)
    }

    private static func time(_ reader: inout JSONReader) throws(JSONError) -> Int64 {
        guard reader.peek() == UInt8(ascii: "\"") else { return try reader.readInteger() }
        let start = reader.index
        guard let time = Int64(try reader.readString()) else { throw JSONError(.wrongType, at: start) }
        return time
    }
}

/// The ids that a caller is to drop, as a header: a JSON array in ASCII.
struct DeletedHeader {
    private(set) var text: [UInt8] = [UInt8(ascii: "[")]

    /// Adds an id; `false` where there is no room within `limit` bytes. The first one always finds room.
    mutating func append(_ id: some Sequence<UInt8>, within limit: Int = .max) -> Bool {
        var writer = JSONWriter(capacity: 64)
        if text.count > 1 { writer.raw(",") }
        writer.asciiString(String(decoding: Array(id), as: UTF8.self))
        let word = writer.bytes
        guard text.count == 1 || text.count + word.count < limit else { return false }
        text += word
        return true
    }

    var header: String { String(decoding: text, as: UTF8.self) + "]" }
}
