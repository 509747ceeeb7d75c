package import TidemarkWire

/// Puts canonical ids in the places where an operation names temporary ones: on the server before anything is stored,
/// on the device where a sealed operation is read again.
package struct Resolution: Hashable, Sendable {
    /// With every id in place that is known.
    package var operation: Operation
    /// The first reference whose id is not known; it stands in `operation` as it came.
    package var missing: Missing?

    package struct Missing: Hashable, Sendable {
        package var entity: String
        package var temporary: RecordID
    }

    /// - Parameters:
    ///   - isCandidate: which ids may have to give way; what is none of them is left as it is.
    ///   - canonical: the id that stands for such a one of an entity; `nil` where none is known.
    package init(
        _ operation: Operation, isCandidate: (String) -> Bool = TemporaryShape.matches,
        canonical: (_ entity: String, _ temporary: RecordID) throws -> RecordID?
    ) throws {
        self.operation = operation
        guard !operation.references.isEmpty else { return }
        self.operation.references = []
        let lookup = operation.fields.lookup
        /// Values that were read, and those that take their places.
        var read: [ArraySlice<UInt8>: Value] = [:]
        var fields: [ArraySlice<UInt8>: Value] = [:]
        func value(_ name: ArraySlice<UInt8>) -> Value? {
            if let value = fields[name] ?? read[name] { return value }
            read[name] = lookup[name].flatMap(DataObject.decoded)
            return read[name]
        }
        for reference in operation.references {
            var isMissing = false
            func replacement(_ value: IDValue) throws -> IDValue? {
                guard isCandidate(value.text), let temporary = RecordID(value.text) else { return nil }
                if let id = try canonical(reference.entity, temporary) { return value.replaced(by: id) }
                missing = missing ?? Missing(entity: reference.entity, temporary: temporary)
                isMissing = true
                return nil
            }
            switch reference.place {
            case .field(let field):
                let name = operation.fields.spelling(of: field)
                if let current = value(name), let id = IDValue(current), let new = try replacement(id) {
                    fields[name] = new.value
                }
            case .document(let field, let path):
                let name = operation.fields.spelling(of: field)
                guard case .text(let document)? = value(name),
                    let path = JSONPath(path),
                    let new = try path.replacing(in: Array(document.utf8), replacement)
                else { break }
                fields[name] = .text(String(decoding: new, as: UTF8.self))
            case .key(let part):
                self.operation.id = try self.operation.id?.replacing(part: part, replacement) ?? self.operation.id
            }
            if isMissing { self.operation.references.append(reference) }
        }
        self.operation.fields = operation.fields.setting(fields)
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
