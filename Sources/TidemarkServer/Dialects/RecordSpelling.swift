import TidemarkCore
package import TidemarkWire

/// How one dialect spells an entity's records: a flat object of its fields, with the id and a time beside them.
package struct RecordSpelling: Hashable, Sendable {
    package enum Time: Hashable, Sendable { case milliseconds, date }

    private struct Member: Hashable, Sendable {
        /// With its quotes.
        var name: [UInt8]
        var form: EntityPath.Form
    }

    /// Member names with their quotes.
    private let id: [UInt8]
    private let time: [UInt8]
    private let timeForm: Time
    package let idName: String
    private let timeName: String
    /// By the field's name as names are compared.
    private var members: [[UInt8]: Member] = [:]
    /// Fields by the names of their members, as names are compared.
    private var fields: [[UInt8]: String] = [:]
    /// Names that stand for a field of another name, as names are compared: a field that has such a name itself is not
    /// shown under it.
    private var taken: Set<[UInt8]> = []
    /// The names of the id and the time, as names are compared.
    private let foldedID, foldedTime: [UInt8]

    package init(_ path: EntityPath, time timeForm: Time) {
        idName = path.id
        timeName = timeForm == .milliseconds ? path.lastModified : path.updatedAt
        (id, time) = (DataObject.Builder.quoted(path.id), DataObject.Builder.quoted(timeName))
        self.timeForm = timeForm
        (foldedID, foldedTime) = (Self.folded(idName), Self.folded(timeName))
        taken = [foldedID, foldedTime]
        for (field, member) in path.members {
            let name = DataObject.Builder.quoted(member.name)
            members[Self.folded(field)] = Member(name: name, form: member.form)
            fields[Self.folded(member.name)] = field
            taken.insert(Self.folded(member.name))
        }
    }

    /// The field behind a member.
    package func field(_ member: String) -> String { fields[Self.folded(member)] ?? member }

    private static func folded(_ name: String) -> [UInt8] { Identifier.folded(DataObject.canonical(name)) }

    /// Whether a field has a member in the dialect.
    ///
    /// - Parameter field: its name on the wire, without quotes.
    func shows(_ field: ArraySlice<UInt8>) -> Bool {
        let folded = Identifier.folded(field)
        return members[folded] != nil || !taken.contains(folded)
    }

    /// How the field's values are spelled.
    package func form(_ field: String) -> EntityPath.Form {
        members[Identifier.folded(DataObject.canonical(field))]?.form ?? .plain
    }

    // MARK: Writing

    package func write(
        _ record: UnsafeRawBufferPointer, at moment: Int64, _ data: DataObject, to writer: inout JSONWriter
    ) {
        writer.raw(byte: UInt8(ascii: "{"))
        writer.raw(id)
        writer.raw(byte: UInt8(ascii: ":"))
        writer.string(utf8: record)
        for field in data.fields {
            let folded = Identifier.folded(data.name(field))
            let member = members[folded]
            guard member != nil || !taken.contains(folded) else { continue }
            writer.raw(byte: UInt8(ascii: ","))
            writer.raw(member?.name ?? [UInt8(ascii: "\"")] + data.name(field) + [UInt8(ascii: "\"")])
            writer.raw(byte: UInt8(ascii: ":"))
            Self.write(data.value(field), as: member?.form ?? .plain, to: &writer)
        }
        writer.raw(byte: UInt8(ascii: ","))
        writer.raw(time)
        writer.raw(byte: UInt8(ascii: ":"))
        switch timeForm {
        case .milliseconds: writer.integer(moment)
        case .date: Timestamp.write(milliseconds: moment, to: &writer)
        }
        writer.raw(byte: UInt8(ascii: "}"))
    }

    package func bytes(_ record: RecordID, at moment: Int64, _ data: DataObject) -> [UInt8] {
        var writer = JSONWriter(capacity: data.bytes.count + 128)
        Array(record.text.utf8).withUnsafeBytes { write($0, at: moment, data, to: &writer) }
        return writer.bytes
    }

    /// A value that is not of its form goes as it is.
    private static func write(_ value: ArraySlice<UInt8>, as form: EntityPath.Form, to writer: inout JSONWriter) {
        switch (form, form == .plain ? nil : DataObject.decoded(value)) {
        case (.boolean, .integer(0)?): writer.raw("false")
        case (.boolean, .integer(1)?): writer.raw("true")
        case (.json, .text(let text)?) where isDocument(text): writer.raw(text.utf8)
        case (.plain, _), (.boolean, _), (.json, _): writer.raw(value)
        }
    }

    /// Numbers, `null` and words in quotes are values, and no documents: each text comes back as it was.
    private static func beginsDocument(_ first: UInt8?) -> Bool { first.map("{[tf".utf8.contains) ?? false }

    private static func isDocument(_ text: String) -> Bool {
        Array(text.utf8).withUnsafeBytes { bytes in
            guard beginsDocument(bytes.first), bytes.last.map("}]e".utf8.contains) ?? false else { return false }
            var reader = JSONReader(bytes)
            do throws(JSONError) {
                try reader.skip()
                try reader.finish()
                return true
            } catch { return false }
        }
    }

    // MARK: Reading

    /// The fields of a body. It may hold what an answer held: the id, which has to be the record's, and the time, which
    /// says nothing.
    package func fields(of body: UnsafeRawBufferPointer, record: RecordID) throws(JSONError) -> DataObject {
        var reader = JSONReader(body)
        var builder = DataObject.Builder(capacity: body.count)
        var seen = MemberNames()
        var names: Set<[UInt8]> = []
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader, ignoringCase: true)
            let label = reader.string(name)
            do throws(JSONError) {
                let folded = Self.folded(label)
                if folded == foldedID {
                    try check(record, &reader)
                } else if folded == foldedTime {
                    try reader.skipUnknown()
                } else {
                    let field = fields[folded] ?? label
                    guard field.utf8.first != UInt8(ascii: "$") else {
                        throw JSONError(.reservedMember, at: name.range.lowerBound)
                    }
                    guard names.insert(Identifier.folded(field.utf8)).inserted else {
                        throw JSONError(.duplicateMember, at: name.range.lowerBound)
                    }
                    builder.append(field, try Self.value(as: form(field), &reader))
                }
            } catch { throw error.inside(label) }
        }
        try reader.finish()
        return builder.finish()
    }

    private func check(_ record: RecordID, _ reader: inout JSONReader) throws(JSONError) {
        let start = reader.index
        let text: String
        switch try reader.readValue() {
        case .text(let value): text = value
        case .integer(let value): text = String(value)
        case .null, .real, .blob: throw JSONError(.wrongType, at: start)
        }
        guard text.hasSameBytes(as: record.text) else { throw JSONError(.invalidIdentifier, at: start) }
    }

    private static func value(as form: EntityPath.Form, _ reader: inout JSONReader) throws(JSONError) -> Value {
        switch (form, reader.peek()) {
        case (.boolean, UInt8(ascii: "t")), (.boolean, UInt8(ascii: "f")):
            return .integer(try reader.readBool() ? 1 : 0)
        case (.json, let first) where beginsDocument(first):
            return .text(String(decoding: reader.bytes[try reader.skip()], as: UTF8.self))
        case (.plain, _), (.boolean, _), (.json, _): return try reader.readValue()
        }
    }
}

/// Which records of an entity are wanted: those whose field has this value.
package struct RecordFilter: Hashable, Sendable {
    private let field: [UInt8]
    private let form: EntityPath.Form
    private let isID: Bool
    private let text: String

    /// - Parameters:
    ///   - member: the field as the dialect names it.
    ///   - text: the value: a text as it is, a number in decimal, `true` and `false` where values are spelled so, and
    ///     `null` for none.
    package init(_ member: String, _ text: String, _ spelling: RecordSpelling) {
        let field = spelling.field(member)
        self.field = Identifier.folded(DataObject.canonical(field))
        form = spelling.form(field)
        isID = member == spelling.idName
        self.text = text
    }

    package func matches(_ record: UnsafeRawBufferPointer, _ data: DataObject) -> Bool {
        guard !isID else { return record.elementsEqual(text.utf8) }
        let own = data.fields.first { Identifier.isSameName(data.name($0), field) }
        switch own.flatMap(data.decoded) ?? .null {
        case .null: return text == "null"
        case .text(let value): return value.hasSameBytes(as: text)
        case .integer(let value):
            if form == .boolean, let wanted = Bool(text) { return value == (wanted ? 1 : 0) }
            return String(value) == text
        case .real(let value): return Double(text) == value
        case .blob: return false
        }
    }
}

extension Sequence<RecordFilter> {
    func matches(_ record: UnsafeRawBufferPointer, _ data: DataObject) -> Bool {
        allSatisfy { $0.matches(record, data) }
    }
}
