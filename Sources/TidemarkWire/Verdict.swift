/// Why an operation was not taken: for good as it stands or, where its verdict is `deferred`, for now. They are plain
/// texts, since an operator's own rules refuse with codes of their own; a later version may add some.
public enum RejectionCode {
    /// The record was deleted elsewhere, and deletes win.
    public static let recordDeleted = "record_deleted"
    /// The key was used before with another payload.
    public static let operationMismatch = "operation_mismatch"
    /// The entity is not declared, and the server is strict.
    public static let entityUnknown = "entity_unknown"
    /// The entity is pulled only, or pushed only.
    public static let directionForbidden = "direction_forbidden"
    /// The record, as it would become, is larger than a record may be.
    public static let recordTooLarge = "record_too_large"
    /// An operation of a kind that the entity does not take.
    public static let kindMismatch = "kind_mismatch"
    /// The server assigns the ids of this entity, and this one is not one of them.
    public static let idNotAssigned = "id_not_assigned"
    /// A temporary id where none can be: of another shape, or of an entity whose ids devices make.
    public static let temporaryIDRefused = "temporary_id_refused"
    /// The operation's places hold more temporary ids than are looked up for one.
    public static let tooManyReferences = "too_many_references"
    /// Another operation of the same group was not taken.
    public static let groupFailed = "group_failed"
    /// The user has deleted more records lately than the server takes without a confirmation.
    public static let deleteBrake = "delete_brake"
    /// The scope has no room for it now: the operation is `deferred` with this code, and sent again later. A blob that
    /// has no room is refused with `ProblemCode.quotaExceeded`, of the same spelling.
    public static let quotaExceeded = "quota_exceeded"
    /// An item with a stamp lost against a record for which the answer has no room: it is sent again (W88).
    package static let pageFull = "page_full"
    /// The server does not do this yet.
    public static let unsupportedOperation = "unsupported_operation"
    /// The server cannot make out the text that a patch was made from; the device sends it whole, and nobody is told.
    package static let patchBaseUnknown = "patch_base_unknown"
    /// The device itself could not put the record on the wire.
    public static let unsendableValue = "unsendable_value"
    /// The server refuses every request with the operation in it; the device itself says so.
    public static let requestRefused = "request_refused"
    /// A rule of the operator's own threw, or answered what it may not answer.
    public static let ruleFailed = "rule_failed"
    /// The record says another scope than the one it was sent to, or its table has none of that name.
    public static let scopeMismatch = "scope_mismatch"
    /// The operator's own table has no such column.
    public static let columnUnknown = "column_unknown"
    /// A column of the operator's own table cannot hold the value.
    public static let valueRefused = "value_refused"
    /// A column of the operator's own table needs a value.
    public static let valueMissing = "value_missing"
    /// The record refers to one that is not there, or is referred to, and the operator's own table forbids that.
    public static let referenceViolated = "reference_violated"
    /// Another row of the operator's own table has the value already.
    public static let notUnique = "not_unique"
    /// A check of the operator's own table fails.
    public static let checkFailed = "check_failed"
    /// The operator's own table does not take the row for another reason, such as a trigger that says no.
    public static let tableRefused = "table_refused"
    /// A field that is declared to name a blob holds something else (A12).
    public static let attachmentInvalid = "attachment_invalid"

    /// The protocol's own codes, which mean something to devices. No rule of an operator's may use them: a new code
    /// takes the word from rules that use it, and their refusals become `rule_failed`.
    package static let all: Set<String> = [
        recordDeleted, operationMismatch, entityUnknown, directionForbidden, recordTooLarge,
        kindMismatch, idNotAssigned, temporaryIDRefused, tooManyReferences, groupFailed, deleteBrake,
        quotaExceeded, pageFull, unsupportedOperation, patchBaseUnknown, unsendableValue, ruleFailed, scopeMismatch,
        requestRefused, columnUnknown, valueRefused, valueMissing, referenceViolated, notUnique, checkFailed,
        tableRefused, attachmentInvalid,
        // A device's name for an edit that waits for the app's decision.
        "conflict",
    ]

    /// Whether a rule of the operator's own may refuse with this code.
    package static func isOperators(_ code: String) -> Bool {
        guard (1...63).contains(code.utf8.count), let first = code.utf8.first, (0x61...0x7a).contains(first) else {
            return false
        }
        let isWord = code.utf8.allSatisfy {
            (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) || $0 == UInt8(ascii: "_")
        }
        return isWord && !all.contains(code)
    }
}

/// The server's answer to one operation (Protocol.md).
package struct Verdict: Hashable, Sendable {
    package enum Status: String, Hashable, Sendable, CaseIterable {
        case applied, merged, conflict, rejected, deferred, outcomeUnknown = "settled"
    }

    /// The row that resulted, where it is not just the reader's base with its own fields on top.
    package struct Record: Hashable, Sendable {
        package var version: Version
        /// `nil`: the record is deleted.
        package var data: DataObject?

        package init(version: Version, data: DataObject?) {
            self.version = version
            self.data = data
        }
    }

    package struct Refusal: Hashable, Sendable {
        package var code: String
        package var detail: String
        package var hint: String

        package init(code: String, detail: String, hint: String) {
            self.code = code
            self.detail = detail
            self.hint = hint
        }
    }

    /// A field that somebody else had changed since the edit's base, and that the edit has replaced.
    package struct Overwrite: Hashable, Sendable {
        package var field: String
        package var version: Version
        package var theirs: Value
        package var rule: ConflictRule

        package init(field: String, version: Version, theirs: Value, rule: ConflictRule = .lastWriteWins) {
            self.field = field
            self.version = version
            self.theirs = theirs
            self.rule = rule
        }
    }

    /// A field whose value in the edit does not stand; what stands is in the verdict's record.
    package struct Loss: Hashable, Sendable {
        /// `nil`: the edit was a delete, and the record stays.
        package var field: String?
        package var rule: ConflictRule

        package init(field: String?, rule: ConflictRule) {
            self.field = field
            self.rule = rule
        }
    }

    package var status: Status
    package var version: Version?
    package var id: RecordID?
    package var record: Record?
    package var refusal: Refusal?
    package var after: Int64?
    package var overwrites: [Overwrite] = []
    package var losses: [Loss] = []
    /// The tombstone of the record that the edit revived.
    package var revived: Version?
    /// When what the operation met was committed, in milliseconds since 1970, where it met something.
    package var theirsAt: Int64?
    package var isReplayed = false

    /// Whether something of the operation stands in the log, or stood there before.
    package var tookEffect: Bool { status == .applied || status == .merged || status == .outcomeUnknown }

    /// Whether the operation was taken as one that is `merged`, but there was no room to tell the record. A verdict
    /// that is `settled` because nothing more is known of it has no version.
    package var isShort: Bool { status == .outcomeUnknown && version != nil }

    /// Taken as it was sent, and nothing to tell.
    package var isPlain: Bool {
        status == .applied && record == nil && overwrites.isEmpty && losses.isEmpty && revived == nil
    }

    package init(_ status: Status, version: Version? = nil, record: Record? = nil, refusal: Refusal? = nil) {
        self.status = status
        self.version = version
        self.record = record
        self.refusal = refusal
    }
}

// MARK: - Writing

extension Verdict {
    /// The members without braces and without the key: what a server stores and answers again on a replay.
    package func members() -> [UInt8] {
        var writer = JSONWriter(capacity: 64)
        writer.raw("\"status\":\"")
        writer.raw(status.rawValue.utf8)
        writer.raw(byte: UInt8(ascii: "\""))
        if let version { writer.member("version", version) }
        if let id { writer.member("id", id.text) }
        if let after { writer.member("after", after) }
        if let record {
            writer.raw(",\"record\":{\"version\":")
            writer.integer(record.version)
            if let data = record.data {
                writer.raw(",\"data\":")
                writer.raw(data.bytes)
            } else {
                writer.raw(",\"deleted\":true")
            }
            writer.raw(byte: UInt8(ascii: "}"))
        }
        if let revived { writer.member("revived", revived) }
        writeOverwrites(to: &writer)
        writeLosses(to: &writer)
        if let theirsAt { writer.member("theirsAt", theirsAt) }
        if let refusal {
            writer.raw(",\"error\":{\"code\":")
            writer.string(refusal.code)
            writer.member("detail", refusal.detail)
            writer.member("hint", refusal.hint)
            writer.raw(byte: UInt8(ascii: "}"))
        }
        return writer.bytes
    }

    private func writeOverwrites(to writer: inout JSONWriter) {
        guard !overwrites.isEmpty else { return }
        writer.raw(",\"overwrote\":[")
        for (index, overwrite) in overwrites.enumerated() {
            writer.raw(index == 0 ? "{\"field\":" : ",{\"field\":")
            writer.string(overwrite.field)
            writer.member("version", overwrite.version)
            writer.memberName("theirs")
            writer.value(overwrite.theirs)
            if overwrite.rule != .lastWriteWins { writer.member("rule", overwrite.rule.rawValue) }
            writer.raw(byte: UInt8(ascii: "}"))
        }
        writer.raw(byte: UInt8(ascii: "]"))
    }

    private func writeLosses(to writer: inout JSONWriter) {
        guard !losses.isEmpty else { return }
        writer.raw(",\"lost\":[")
        for (index, loss) in losses.enumerated() {
            writer.raw(index == 0 ? "{\"rule\":" : ",{\"rule\":")
            writer.string(loss.rule.rawValue)
            if let field = loss.field { writer.member("field", field) }
            writer.raw(byte: UInt8(ascii: "}"))
        }
        writer.raw(byte: UInt8(ascii: "]"))
    }
}

// MARK: - Reading

extension Verdict {
    /// A verdict as it was stored.
    package init(members: [UInt8]) throws {
        let object = Array(#"{"lane":"-","number":1,"#.utf8) + members + Array("}".utf8)
        self = try object.withUnsafeBytes { bytes in
            var reader = JSONReader(bytes)
            return try Verdict.read(from: &reader).1
        }
    }

    package static func read(from reader: inout JSONReader) throws(JSONError) -> (OperationKey, Verdict) {
        let start = reader.index
        var key = OperationKey(lane: "", number: 0)
        var status: Status?
        var verdict = Verdict(.applied)
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "lane": key.lane = try reader.readString()
            case "number": key.number = try reader.readInteger()
            case "status": status = Status(rawValue: try reader.readString())
            case "version": verdict.version = try reader.readInteger()
            case "id": verdict.id = RecordID(try reader.readString())
            case "after": verdict.after = try reader.readInteger()
            case "record": verdict.record = try Record(from: &reader)
            case "error": verdict.refusal = try Refusal(from: &reader)
            case "revived": verdict.revived = try reader.readInteger()
            case "theirsAt": verdict.theirsAt = try reader.readInteger()
            case "lost": verdict.losses = try Self.readLosses(from: &reader)
            case "overwrote": verdict.overwrites = try Self.readOverwrites(from: &reader)
            case "replayed": verdict.isReplayed = try reader.readBool()
            default: try reader.skip()
            }
        }
        guard let status, !key.lane.isEmpty, key.number > 0 else { throw JSONError(.missingMember, at: start) }
        verdict.status = status
        return (key, verdict)
    }

    private static func readOverwrites(from reader: inout JSONReader) throws(JSONError) -> [Overwrite] {
        var overwrites: [Overwrite] = []
        try reader.enterArray()
        while try reader.nextElement() {
            var overwrite = Overwrite(field: "", version: 0, theirs: .null)
            try reader.enterObject()
            while let name = try reader.nextMember() {
                switch reader.string(name) {
                case "field": overwrite.field = try reader.readString()
                case "version": overwrite.version = try reader.readInteger()
                case "theirs": overwrite.theirs = try reader.readValue()
                case "rule": overwrite.rule = ConflictRule(rawValue: try reader.readString()) ?? .serverRule
                default: try reader.skip()
                }
            }
            overwrites.append(overwrite)
        }
        return overwrites
    }

    private static func readLosses(from reader: inout JSONReader) throws(JSONError) -> [Loss] {
        var losses: [Loss] = []
        try reader.enterArray()
        while try reader.nextElement() {
            var loss = Loss(field: nil, rule: .serverRule)
            try reader.enterObject()
            while let name = try reader.nextMember() {
                switch reader.string(name) {
                case "field": loss.field = try reader.readString()
                case "rule": loss.rule = ConflictRule(rawValue: try reader.readString()) ?? .serverRule
                default: try reader.skip()
                }
            }
            losses.append(loss)
        }
        return losses
    }
}

extension Verdict.Record {
    fileprivate init(from reader: inout JSONReader) throws(JSONError) {
        self.init(version: 0, data: nil)
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "version": version = try reader.readInteger()
            case "data": data = try DataObject(from: &reader)
            default: try reader.skip()
            }
        }
    }
}

extension Verdict.Refusal {
    fileprivate init(from reader: inout JSONReader) throws(JSONError) {
        self.init(code: "", detail: "", hint: "")
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "code": code = try reader.readString()
            case "detail": detail = try reader.readString()
            case "hint": hint = try reader.readString()
            default: try reader.skip()
            }
        }
    }
}
