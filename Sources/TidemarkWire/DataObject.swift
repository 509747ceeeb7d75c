/// The fields of a record as canonical JSON: the bytes that go on the wire and into the log, with a table of where
/// each field stands. Fields are compared and spliced as bytes; nothing is decoded on the way.
package struct DataObject: Hashable, Sendable {
    package struct Field: Hashable, Sendable {
        package var name: Range<Int>
        package var value: Range<Int>
    }

    /// `{"title":"Buy milk","done":0}`
    package private(set) var bytes: [UInt8]
    package private(set) var fields: [Field]

    package static let empty = DataObject(bytes: Array("{}".utf8), fields: [])

    package static func == (lhs: DataObject, rhs: DataObject) -> Bool { lhs.bytes == rhs.bytes }
    package func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

    /// The field's name in its canonical spelling, without quotes.
    package func name(_ field: Field) -> ArraySlice<UInt8> { bytes[field.name] }
    package func value(_ field: Field) -> ArraySlice<UInt8> { bytes[field.value] }
    package func nameString(_ field: Field) -> String { Self.string(canonical: bytes[field.name]) }

    /// A name that is spelled canonically, as text.
    package static func string(canonical name: ArraySlice<UInt8>) -> String {
        name.withUnsafeBytes { buffer in
            JSONReader(buffer).string(JSONReader.Text(range: 0..<buffer.count, hasEscapes: true))
        }
    }

    package func value(named name: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        for field in fields where bytes[field.name] == name { return bytes[field.value] }
        return nil
    }

    /// The decoded value of a field, by its name in whichever case; `nil` where the record does not have it.
    package func value(_ name: String) -> Value? { value(named: spelling(of: name)).flatMap(Self.decoded) }

    /// How the record spells the name of a field (W75): one that it does not have, as it comes.
    package func spelling(of name: String) -> ArraySlice<UInt8> {
        let name = Self.canonical(name)[...]
        guard value(named: name) == nil else { return name }
        return fields.lazy.map { bytes[$0.name] }.first { Identifier.isSameName($0, name) } ?? name
    }

    package func decoded(_ field: Field) -> Value? { Self.decoded(bytes[field.value]) }

    package static func decoded(_ bytes: ArraySlice<UInt8>) -> Value? {
        bytes.withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            return try? reader.readValue()
        }
    }

    /// All fields, decoded: for rules and for people, never for a page.
    package var values: [String: Value] {
        var values: [String: Value] = [:]
        for field in fields { values[nameString(field)] = decoded(field) }
        return values
    }

    /// A name as the canonical writer spells it, without quotes.
    package static func canonical(_ name: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.string(name)
        return Array(writer.bytes.dropFirst().dropLast())
    }
}

// MARK: - Making one

extension DataObject {
    package struct Builder {
        private var writer: JSONWriter
        private var fields: [Field] = []

        package init(capacity: Int = 64) {
            writer = JSONWriter(capacity: capacity)
            writer.raw(byte: UInt8(ascii: "{"))
        }

        package var isEmpty: Bool { fields.isEmpty }

        package mutating func append(_ name: String, _ value: Value) {
            append(name: Self.quoted(name)) { $0.value(value) }
        }

        package mutating func append(canonicalName name: ArraySlice<UInt8>, canonicalValue value: ArraySlice<UInt8>) {
            separate()
            writer.raw(byte: UInt8(ascii: "\""))
            let start = writer.bytes.count
            writer.raw(name)
            let end = writer.bytes.count
            writer.raw("\":")
            let valueStart = writer.bytes.count
            writer.raw(value)
            fields.append(Field(name: start..<end, value: valueStart..<writer.bytes.count))
        }

        /// Appends a field as it was read.
        fileprivate mutating func append(_ name: JSONReader.Text, _ scalar: JSONScalar, of reader: JSONReader) {
            separate()
            let start = writer.bytes.count + 1
            writer.text(name, of: reader)
            let end = writer.bytes.count - 1
            writer.raw(byte: UInt8(ascii: ":"))
            let valueStart = writer.bytes.count
            switch scalar {
            case .text(let text): writer.text(text, of: reader)
            case .null, .integer, .real, .blob: writer.value(reader.value(scalar))
            }
            fields.append(Field(name: start..<end, value: valueStart..<writer.bytes.count))
        }

        /// Appends a field whose quoted name is at hand already, as for a table's columns.
        package mutating func append(name quoted: [UInt8], _ write: (inout JSONWriter) -> Void) {
            separate()
            let start = writer.bytes.count + 1
            writer.raw(quoted)
            let end = writer.bytes.count - 1
            writer.raw(byte: UInt8(ascii: ":"))
            let valueStart = writer.bytes.count
            write(&writer)
            fields.append(Field(name: start..<end, value: valueStart..<writer.bytes.count))
        }

        package static func quoted(_ name: String) -> [UInt8] {
            var writer = JSONWriter()
            writer.string(name)
            return writer.bytes
        }

        package consuming func finish() -> DataObject {
            writer.raw(byte: UInt8(ascii: "}"))
            return DataObject(bytes: writer.bytes, fields: fields)
        }

        private mutating func separate() {
            if !fields.isEmpty { writer.raw(byte: UInt8(ascii: ",")) }
        }
    }

    package init(_ pairs: KeyValuePairs<String, Value>) {
        var builder = Builder()
        for (name, value) in pairs { builder.append(name, value) }
        self = builder.finish()
    }

    /// Reads an object of column values and respells it canonically.
    package init(from reader: inout JSONReader) throws(JSONError) {
        var builder = Builder()
        var seen = MemberNames()
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader, ignoringCase: true)
            guard !reader.begins(name, with: UInt8(ascii: "$")) else {
                throw JSONError(.reservedMember, at: name.range.lowerBound).inside(reader.string(name))
            }
            do { builder.append(name, try reader.readScalar(), of: reader) } catch {
                throw error.inside(reader.string(name))
            }
        }
        self = builder.finish()
    }

    /// Takes bytes that this type wrote itself, as they come back from a log.
    package init(stored bytes: [UInt8]) throws(JSONError) {
        let result: Result<[Field], JSONError> = bytes.withUnsafeBytes { buffer in
            Result { () throws(JSONError) in
                var reader = JSONReader(buffer)
                var fields: [Field] = []
                try reader.enterObject()
                while let name = try reader.nextMember() {
                    fields.append(Field(name: name.range, value: try reader.skip()))
                }
                try reader.finish()
                return fields
            }
        }
        self.init(bytes: bytes, fields: try result.get())
    }

    /// This record with the other's fields on top, in this record's order, new fields behind.
    package func overlaid(with other: DataObject) -> DataObject {
        var builder = Builder(capacity: bytes.count + other.bytes.count)
        let (own, others) = (lookup, other.lookup)
        for field in fields {
            let name = bytes[field.name]
            builder.append(canonicalName: name, canonicalValue: others[name] ?? bytes[field.value])
        }
        for field in other.fields where own[other.name(field)] == nil {
            builder.append(canonicalName: other.name(field), canonicalValue: other.value(field))
        }
        return builder.finish()
    }

    /// The same fields in the order of their names, whatever order a sender wrote them in.
    package func sorted() -> DataObject {
        var builder = Builder(capacity: bytes.count)
        for field in byName { builder.append(canonicalName: name(field), canonicalValue: value(field)) }
        return builder.finish()
    }

    /// Writes what ``sorted()`` has in its bytes.
    package func writeSorted(to writer: inout JSONWriter) {
        writer.raw(byte: UInt8(ascii: "{"))
        for (index, field) in byName.enumerated() {
            writer.raw(index == 0 ? "\"" : ",\"")
            writer.raw(name(field))
            writer.raw("\":")
            writer.raw(value(field))
        }
        writer.raw(byte: UInt8(ascii: "}"))
    }

    private var byName: [Field] { fields.sorted { name($0).lexicographicallyPrecedes(name($1)) } }

    /// The fields for which `keep` holds.
    package func filter(_ keep: (Field) -> Bool) -> DataObject {
        var builder = Builder(capacity: bytes.count)
        for field in fields where keep(field) {
            builder.append(canonicalName: name(field), canonicalValue: value(field))
        }
        return builder.finish()
    }
}
