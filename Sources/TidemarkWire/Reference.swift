/// A place in an operation that holds a temporary id: the server puts the record's own id there before it stores
/// anything, so that no other device ever sees a temporary one.
package struct Reference: Hashable, Sendable {
    package enum Place: Hashable, Sendable {
        /// A field's whole value.
        case field(String)
        /// The value that a path finds in the JSON document that a text field holds.
        case document(field: String, path: String)
        /// A part of the record's own id, counted from 0; the whole id where that is not a list.
        case key(part: Int64)

        /// The field that holds the id.
        package var field: String? {
            switch self {
            case .field(let field), .document(let field, _): field
            case .key: nil
            }
        }
    }

    package var place: Place
    /// Whose id stands there.
    package var entity: String

    package init(_ place: Place, to entity: String) {
        self.place = place
        self.entity = entity
    }
}

extension Reference {
    /// The places that one operation names at most.
    package static let limit = 10_000

    package func write(to writer: inout JSONWriter) {
        switch place {
        case .field(let field):
            writer.raw("{\"field\":")
            writer.string(field)
        case .document(let field, let path):
            writer.raw("{\"field\":")
            writer.string(field)
            writer.member("path", path)
        case .key(let part):
            writer.raw("{\"key\":")
            writer.integer(part)
        }
        writer.member("entity", entity)
        writer.raw("}")
    }

    package static func readAll(from reader: inout JSONReader) throws(JSONError) -> [Reference] {
        var references: [Reference] = []
        var documents = 0
        try reader.enterArray()
        while try reader.nextElement() {
            guard references.count < limit else { throw JSONError(.tooMany, at: reader.index, limit: limit) }
            do throws(JSONError) {
                let start = reader.index
                let reference = try Reference(from: &reader)
                if case .document = reference.place { documents += 1 }
                guard documents <= Limits.documentPlaces else { throw JSONError(.tooManyMembers, at: start) }
                references.append(reference)
            } catch {
                throw error.inside(index: references.count)
            }
        }
        return references
    }

    private init(from reader: inout JSONReader) throws(JSONError) {
        let start = reader.index
        var (field, path, entity): (String?, String?, String?)
        var part: Int64?
        var seen = MemberNames()
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader)
            let label = reader.string(name)
            do throws(JSONError) {
                switch label {
                case "field": field = try reader.readString()
                case "path": path = try reader.readString()
                case "key": part = try reader.readInteger(in: 0...Self.partLimit)
                case "entity": entity = try reader.readIdentifier(Identifier.isEntity)
                default: try reader.skipUnknown()
                }
            } catch { throw error.inside(label) }
        }
        guard let entity else { throw JSONError(.missingMember, at: start).inside("entity") }
        switch (field, path, part) {
        case (let field?, let path?, nil): self.init(.document(field: field, path: path), to: entity)
        case (let field?, nil, nil): self.init(.field(field), to: entity)
        case (nil, nil, let part?): self.init(.key(part: part), to: entity)
        case (nil, _, _), (_?, _, _?): throw JSONError(.missingMember, at: start).inside("field")
        }
    }

    /// More columns than any key has.
    private static let partLimit: Int64 = 2000
}
