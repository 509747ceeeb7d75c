/// The name of an operation for ever: one lane of one device, and its number there (Protocol.md).
package struct OperationKey: Hashable, Sendable {
    package var lane: String
    package var number: Int64

    package init(lane: String, number: Int64) {
        self.lane = lane
        self.number = number
    }
}

/// One edit of one record, on its way to the server.
package struct Operation: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case upsert, delete, event, patch, void
    }

    package var kind: Kind
    package var entity = ""
    package var id: RecordID?
    package var tempID: RecordID?
    /// The version of the row that the edit was made on; `nil` for an insert.
    package var baseVersion: Version?
    /// An own operation of the same lane whose verdict was not known yet when this one was sealed.
    package var baseNumber: Int64?
    /// Fields whose base is older than `baseVersion`, by canonical name.
    package var fieldBases = FieldBases()
    package var fields = DataObject.empty
    /// Fields of large text, as the difference to what they were at `baseVersion`; none of them is in `fields` too.
    package var patches: [FieldPatch] = []
    /// When the edit was made, as the device's hybrid logical clock tells.
    package var editedAt: String?
    /// When the device had last synced by then, on the server's clock, in milliseconds since 1970.
    package var syncedAt: Int64?
    /// Own operations of the same lane without which this one makes no sense: those that insert what it refers to.
    package var needs: [Int64] = []
    package var epoch: String?
    package var group: String?
    /// A delete that ends a move: the record lives on in another scope.
    package var isMove = false
    /// A delete that somebody was asked about: it goes past the server's brake.
    package var isConfirmed = false
    /// An insert of a row that is older than its device's capture: it makes a record, and never changes one.
    package var isSeed = false
    /// The places that hold temporary ids of other records.
    package var references: [Reference] = []
    /// The operation's place in a lost history, where a device replays it.
    package var original: Original?

    package init(_ kind: Kind, entity: String = "", id: RecordID? = nil) {
        self.kind = kind
        self.entity = entity
        self.id = id
    }

    /// Whether it inserts a record or sets fields of one.
    package var setsFields: Bool {
        switch kind {
        case .upsert, .event, .patch: true
        case .delete, .void: false
        }
    }

    /// Whether it makes the record.
    package var isInsert: Bool { setsFields && baseVersion == nil }

    /// The base that counts for one field.
    package func base(ofField name: ArraySlice<UInt8>) -> Version? { fieldBases[name] ?? baseVersion }
}

// MARK: - Writing

extension Operation {
    /// The members that are sealed with the operation, without braces and without its key: what a device stores
    /// before the first send.
    package func sealedMembers() -> [UInt8] { members { $0.raw(fields.bytes) } }

    /// The canonical form: two sendings of one key with the same form are the same operation, whatever order a sender
    /// wrote the members in.
    package func canonicalBytes() -> [UInt8] { members { fields.writeSorted(to: &$0) } }

    private func members(_ writeFields: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter(capacity: fields.bytes.count + 96)
        writer.raw("\"type\":\"")
        writer.raw(kind.rawValue.utf8)
        writer.raw(byte: UInt8(ascii: "\""))
        if kind == .void { return writer.bytes }
        writer.member("entity", entity)
        if let id { writer.member("id", id.text) }
        if let tempID { writer.member("tempId", tempID.text) }
        if let baseVersion { writer.member("baseVersion", baseVersion) }
        if let baseNumber { writer.member("baseNumber", baseNumber) }
        writeFieldBases(to: &writer)
        if let editedAt { writer.member("editedAt", editedAt) }
        if let syncedAt { writer.member("syncedAt", syncedAt) }
        writeNeeds(to: &writer)
        if let epoch { writer.member("epoch", epoch) }
        if let group { writer.member("group", group) }
        writeFlags(to: &writer)
        writeReferences(to: &writer)
        original?.write(to: &writer)
        if kind == .patch {
            writer.memberName("patch")
            writer.patches(patches)
        }
        if setsFields {
            writer.raw(kind == .event ? ",\"data\":" : ",\"fields\":")
            writeFields(&writer)
        }
        return writer.bytes
    }

    private func writeFlags(to writer: inout JSONWriter) {
        if isMove { writer.raw(",\"moved\":true") }
        if isConfirmed { writer.raw(",\"confirmed\":true") }
        if isSeed { writer.raw(",\"seed\":true") }
    }

    private func writeReferences(to writer: inout JSONWriter) {
        guard !references.isEmpty else { return }
        writer.raw(",\"refs\":[")
        for (index, reference) in references.enumerated() {
            if index > 0 { writer.raw(",") }
            reference.write(to: &writer)
        }
        writer.raw("]")
    }

    private func writeFieldBases(to writer: inout JSONWriter) {
        guard !fieldBases.isEmpty else { return }
        writer.raw(",\"bases\":{")
        for (index, base) in fieldBases.all.enumerated() {
            writer.raw(index == 0 ? "\"" : ",\"")
            writer.raw(base.name)
            writer.raw("\":")
            writer.integer(base.version)
        }
        writer.raw(byte: UInt8(ascii: "}"))
    }

    private func writeNeeds(to writer: inout JSONWriter) {
        guard !needs.isEmpty else { return }
        writer.raw(",\"needs\":[")
        for (index, number) in needs.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.integer(number)
        }
        writer.raw("]")
    }
}

extension JSONWriter {
    /// Appends `,"name":"value"`.
    package mutating func member(_ name: StaticString, _ value: String) {
        memberName(name)
        string(value)
    }

    /// Appends `,"name":value`.
    package mutating func member(_ name: StaticString, _ value: Int64) {
        memberName(name)
        integer(value)
    }

    package mutating func memberName(_ name: StaticString) {
        raw(",\"")
        raw(name)
        raw("\":")
    }
}

// MARK: - Reading

extension Operation {
    /// Reads an operation with its key.
    package static func read(from reader: inout JSONReader) throws(JSONError) -> (OperationKey, Operation) {
        let start = reader.index
        var key = OperationKey(lane: "", number: 0)
        var kind: Kind?
        var operation = Operation(.void)
        var seen = MemberNames()
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader)
            let label = reader.string(name)
            do throws(JSONError) {
                switch label {
                case "lane": key.lane = try reader.readIdentifier(Identifier.isLane)
                case "number": key.number = try reader.readInteger(in: 1...Int64.max)
                case "type": kind = try Self.readKind(from: &reader)
                default: try operation.readMember(label, from: &reader)
                }
            } catch { throw error.inside(label) }
        }
        guard let kind else { throw JSONError(.missingMember, at: start).inside("type") }
        guard !key.lane.isEmpty else { throw JSONError(.missingMember, at: start).inside("lane") }
        guard key.number > 0 else { throw JSONError(.missingMember, at: start).inside("number") }
        operation.kind = kind
        try operation.checkComplete(at: start)
        return (key, operation)
    }

    private static func readKind(from reader: inout JSONReader) throws(JSONError) -> Kind {
        let start = reader.index
        guard let kind = Kind(rawValue: try reader.readString()) else { throw JSONError(.wrongType, at: start) }
        return kind
    }

    private mutating func readMember(_ label: String, from reader: inout JSONReader) throws(JSONError) {
        switch label {
        case "entity": entity = try reader.readIdentifier(Identifier.isEntity)
        case "id": id = RecordID(try reader.readIdentifier(Identifier.isRecordID))
        case "tempId": tempID = RecordID(try reader.readIdentifier(Identifier.isRecordID))
        case "baseVersion": baseVersion = try reader.readInteger(in: 0...Int64.max)
        case "baseNumber": baseNumber = try reader.readInteger(in: 1...Int64.max)
        case "bases": fieldBases = try FieldBases(from: &reader)
        case "patch": patches = try reader.readPatches()
        case "fields", "data": fields = try DataObject(from: &reader)
        case "editedAt": editedAt = try reader.readString()
        case "syncedAt": syncedAt = try reader.readInteger(in: 0...Int64.max)
        case "needs": try readNeeds(from: &reader)
        case "epoch": epoch = try reader.readString()
        case "group": group = try reader.readString()
        case "moved": isMove = try reader.readBool()
        case "confirmed": isConfirmed = try reader.readBool()
        case "seed": isSeed = try reader.readBool()
        case "refs": references = try Reference.readAll(from: &reader)
        case "original": original = try Original(from: &reader)
        default: try reader.skipUnknown()
        }
    }

    private mutating func readNeeds(from reader: inout JSONReader) throws(JSONError) {
        try reader.enterArray()
        while try reader.nextElement() {
            guard needs.count < Self.needLimit else {
                throw JSONError(.tooMany, at: reader.index, limit: Self.needLimit)
            }
            needs.append(try reader.readInteger(in: 1...Int64.max))
        }
    }

    /// Operations that one may need, at most: a row has few foreign keys.
    package static let needLimit = 64

    private func checkComplete(at start: Int) throws(JSONError) {
        guard kind != .void else { return }
        guard !entity.isEmpty else { throw JSONError(.missingMember, at: start).inside("entity") }
        guard id != nil || tempID != nil else { throw JSONError(.missingMember, at: start).inside("id") }
        guard !patches.isEmpty else { return }
        var names = Set(fields.fields.map { Identifier.folded(fields.name($0)) })
        for patch in patches where !names.insert(Identifier.folded(DataObject.canonical(patch.field))).inserted {
            throw JSONError(.duplicateMember, at: start).inside(patch.field)
        }
    }
}

extension JSONReader {
    package mutating func readIdentifier(_ isValid: (String) -> Bool) throws(JSONError) -> String {
        let start = index
        let text = try readString()
        guard isValid(text) else { throw JSONError(.invalidIdentifier, at: start) }
        return text
    }

    package mutating func readInteger(in range: ClosedRange<Int64>) throws(JSONError) -> Int64 {
        let start = index
        let value = try readInteger()
        guard range.contains(value) else { throw JSONError(.outOfRange, at: start) }
        return value
    }
}
