public import Foundation
public import TidemarkWire

/// An object as the server wrote it.
public struct StoredObject: Hashable, Sendable, Identifiable {
    /// Its id within its class.
    public let id: RecordID
    /// When it was last written, by the server's clock.
    public let lastModifiedAt: Date
    /// The JSON object, with `id` and `lastModifiedAt` in it.
    public let json: [UInt8]

    /// Makes an object from its parts, for previews and tests.
    public init(id: RecordID, lastModifiedAt: Date, json: [UInt8]) {
        self.id = id
        self.lastModifiedAt = lastModifiedAt
        self.json = json
    }

    /// A member's value: text, a number, bytes or `.null`; `nil` where there is no such member, or where it is `true`,
    /// `false`, a list or an object. Those come by ``decode(_:with:)``.
    public subscript(member: String) -> Value? {
        json.withUnsafeBytes { bytes in
            var reader = JSONReader(bytes)
            do throws(JSONError) {
                try reader.enterObject()
                while let name = try reader.nextMember() {
                    if reader.string(name).hasSameBytes(as: member) { return try reader.readValue() }
                    try reader.skip()
                }
            } catch { return nil }
            return nil
        }
    }

    /// The object as a type of the app's.
    ///
    /// - Throws: `DecodingError` where the object is not of that form.
    public func decode<Model: Decodable>(
        _ type: Model.Type = Model.self, with decoder: JSONDecoder = JSONDecoder()
    ) throws -> Model {
        try decoder.decode(type, from: Data(json))
    }
}

extension StoredObject {
    private static let idName: StaticString = "id"
    private static let timeName: StaticString = "lastModifiedAt"

    /// Reads an object where the reader stands, and passes over it.
    init(from reader: inout JSONReader) throws(JSONError) {
        _ = reader.peek()
        let start = reader.index
        var id: RecordID?
        var time: Int64?
        try reader.enterObject()
        while let name = try reader.nextMember() {
            let place = reader.index
            if reader.matches(name, Self.idName) {
                id = RecordID(try reader.readString())
                guard id != nil else { throw JSONError(.invalidIdentifier, at: place) }
            } else if reader.matches(name, Self.timeName) {
                time = try reader.readInteger()
            } else {
                try reader.skip()
            }
        }
        guard let id, let time else { throw JSONError(.missingMember, at: start) }
        self.init(id: id, lastModifiedAt: Date(milliseconds: time), json: Array(reader.bytes[start..<reader.index]))
    }

    /// Reads a document that is one object.
    init(document: [UInt8]) throws(JSONError) {
        self = try document.withUnsafeBytes { bytes in
            Result { () throws(JSONError) in
                var reader = JSONReader(bytes)
                let object = try StoredObject(from: &reader)
                try reader.finish()
                return object
            }
        }.get()
    }

    /// Reads a document that is a list of objects.
    static func list(_ document: [UInt8]) throws(JSONError) -> [StoredObject] {
        try document.withUnsafeBytes { bytes in
            Result { () throws(JSONError) in
                var reader = JSONReader(bytes)
                var objects: [StoredObject] = []
                try reader.enterArray()
                while try reader.nextElement() { objects.append(try StoredObject(from: &reader)) }
                try reader.finish()
                return objects
            }
        }.get()
    }
}
