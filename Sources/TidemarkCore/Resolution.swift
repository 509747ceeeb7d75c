package import TidemarkWire

/// Puts canonical ids in the places where an operation names temporary ones: on the server before anything is stored,
/// on the device where a sealed operation is read again.
package struct Resolution: Hashable, Sendable {
    /// The operation with every id in place that is known.
    package var operation: Operation
    /// The first reference whose id is not known; it stands in `operation` as it came.
    package var missing: Missing?

    package struct Missing: Hashable, Sendable {
        package var entity: String
        package var temporary: RecordID
    }

    /// Whether more places hold temporary ids than were allowed; then the operation is as it was.
    package var isTooMany = false

    /// - Parameters:
    ///   - limit: places with such ids that are looked at, at most.
    ///   - stopsAtMissing: whether the first id that is not known ends it: the operation is not to be used then.
    ///   - canonical: the id that stands for such a one of an entity, which is asked for once; `nil` where none is
    ///     known.
    package init(
        _ operation: Operation, limit: Int = .max, stopsAtMissing: Bool = false,
        canonical: (_ entity: String, _ temporary: RecordID) throws -> RecordID?
    ) throws {
        self.operation = operation
        guard !operation.references.isEmpty else { return }
        var search = Search(operation, limit: limit, stopsAtMissing: stopsAtMissing)
        do {
            self.operation = try search.run(canonical)
        } catch is Search.Ended {}
        (missing, isTooMany) = (search.missing, search.isTooMany)
    }
}

/// Looks through the places of one operation.
private struct Search {
    /// Ends the search early: nothing more has to be looked up.
    struct Ended: Error {}

    private struct Name: Hashable {
        var entity: String
        var temporary: RecordID
    }

    let operation: Operation
    let limit: Int
    let stopsAtMissing: Bool
    var missing: Resolution.Missing?
    var isTooMany = false
    private var places = 0
    private var known: [Name: RecordID?] = [:]
    /// The references, by number, in whose places an id stands that is not known.
    private var open: Set<Int> = []

    init(_ operation: Operation, limit: Int, stopsAtMissing: Bool) {
        self.operation = operation
        self.limit = limit
        self.stopsAtMissing = stopsAtMissing
    }

    mutating func run(_ canonical: (String, RecordID) throws -> RecordID?) throws -> Operation {
        var result = operation
        let lookup = operation.fields.lookup
        /// Values that take the places of others.
        var fields: [ArraySlice<UInt8>: Value] = [:]
        func value(_ name: ArraySlice<UInt8>) -> Value? {
            fields[name] ?? lookup[name].flatMap(DataObject.decoded)
        }
        var documents: [(name: ArraySlice<UInt8>, paths: [JSONPath], references: [Int])] = []
        for (number, reference) in operation.references.enumerated() {
            switch reference.place {
            case .field(let field):
                let name = operation.fields.spelling(of: field)
                if let current = value(name), let id = IDValue(current),
                    let new = try replacement(id, number, canonical)
                {
                    fields[name] = new.value
                }
            case .document(let field, let path):
                let name = operation.fields.spelling(of: field)
                guard let path = JSONPath(path) else { continue }
                if let index = documents.firstIndex(where: { $0.name == name }) {
                    documents[index].paths.append(path)
                    documents[index].references.append(number)
                } else {
                    documents.append((name, [path], [number]))
                }
            case .key(let part):
                result.id =
                    try result.id?.replacing(part: part) { try replacement($0, number, canonical) }
                    ?? result.id
            }
        }
        for document in documents {
            guard case .text(let text)? = value(document.name),
                let new = try JSONPaths(document.paths).replacing(
                    in: Array(text.utf8), { try replacement($1, document.references[$0], canonical) })
            else { continue }
            fields[document.name] = .text(String(decoding: new, as: UTF8.self))
        }
        result.references = operation.references.enumerated().filter { open.contains($0.offset) }.map(\.element)
        result.fields = operation.fields.setting(fields)
        return result
    }

    private mutating func replacement(
        _ value: IDValue, _ number: Int, _ canonical: (String, RecordID) throws -> RecordID?
    ) throws -> IDValue? {
        guard TemporaryShape.matches(value.text), let temporary = RecordID(value.text) else { return nil }
        places += 1
        guard places <= limit else {
            isTooMany = true
            throw Ended()
        }
        let entity = operation.references[number].entity
        let name = Name(entity: entity, temporary: temporary)
        let id = try known[name] ?? canonical(entity, temporary)
        known[name] = .some(id)
        if let id { return value.replaced(by: id) }
        missing = missing ?? Resolution.Missing(entity: entity, temporary: temporary)
        open.insert(number)
        if stopsAtMissing { throw Ended() }
        return nil
    }
}

extension DataObject {
    fileprivate func setting(_ values: [ArraySlice<UInt8>: Value]) -> DataObject {
        guard !values.isEmpty else { return self }
        var builder = Builder(capacity: bytes.count)
        for field in fields {
            let name = Array(name(field))
            if let value = values[name[...]] {
                builder.append(name: [UInt8(ascii: "\"")] + name + [UInt8(ascii: "\"")]) { $0.value(value) }
            } else {
                builder.append(canonicalName: self.name(field), canonicalValue: self.value(field))
            }
        }
        return builder.finish()
    }
}

extension RecordID {
    /// An id that is a list has its part replaced; any other is one part as a whole. No temporary id begins like a
    /// list.
    fileprivate func replacing(part: Int64, _ replacement: (IDValue) throws -> IDValue?) rethrows -> RecordID? {
        guard text.utf8.first == UInt8(ascii: "[") else {
            guard part == 0 else { return nil }
            return try replacement(.text(text)).flatMap { RecordID($0.text) }
        }
        var values: [Value] = []
        let isRead = Array(text.utf8).withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            do throws(JSONError) {
                try reader.enterArray()
                while try reader.nextElement() { values.append(try reader.readValue()) }
                try reader.finish()
            } catch { return false }
            return true
        }
        guard isRead, part < values.count, let id = IDValue(values[Int(part)]), let new = try replacement(id) else {
            return nil
        }
        values[Int(part)] = new.value
        var writer = JSONWriter(capacity: text.utf8.count)
        for (index, value) in values.enumerated() {
            writer.raw(byte: index == 0 ? UInt8(ascii: "[") : UInt8(ascii: ","))
            writer.value(value)
        }
        writer.raw(byte: UInt8(ascii: "]"))
        return RecordID(String(decoding: writer.bytes, as: UTF8.self))
    }
}
