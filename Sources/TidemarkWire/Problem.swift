/// An answer that says no to a request as a whole, as RFC 9457 problem details.
package struct Problem: Error, Hashable, Sendable {
    package var code: ProblemCode
    /// The context of this problem, without row data, SQL or stack traces.
    package var detail: String
    /// `checkpoint_expired` and `client_unknown`: why.
    package var reason: Reason?
    /// `checkpoint_expired`: the name of the store's present history.
    package var epoch: String?
    /// `checkpoint_expired`: the last version of the reader's history that the store still has.
    package var survived: Version?
    /// `checkpoint_expired`, to a device that has named itself: the marks of its lanes, at least of the newest.
    package var lanes: [String: Int64]?
    /// `operation_gap`: the lane and the number that the server waits for.
    package var lane: String?
    package var expected: Int64?
    /// `operation_rejected`: the rejection's own code.
    package var rejection: String?
    /// `conflict` and `precondition_failed`: the record as it stands, as the caller's dialect writes it, and its tag.
    package var record: [UInt8]?
    package var recordTag: String?
    /// `upload_offset_mismatch`: where the caller's part ends; it travels as `Upload-Offset` too.
    package var offset: Int64?
    /// Seconds after which another attempt is welcome.
    package var retryAfter: Int?

    package enum Reason: String, Hashable, Sendable, CaseIterable { case retention, epoch, ahead }

    package init(_ code: ProblemCode, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    package static let contentType = "application/problem+json"

    package func body() -> [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.raw("{\"type\":\"urn:tidemark:problem:")
        writer.raw(code.rawValue.utf8)
        writer.raw(byte: UInt8(ascii: "\""))
        writer.member("title", code.title)
        writer.member("status", Int64(code.status))
        writer.member("detail", detail)
        writer.member("code", code.rawValue)
        writer.memberName("retryable")
        writer.bool(code.isRetryable)
        writer.member("hint", code.hint)
        if let reason { writer.member("reason", reason.rawValue) }
        writePast(to: &writer)
        if let rejection { writer.member("rejection", rejection) }
        if let record {
            writer.memberName("record")
            writer.raw(record)
        }
        if let lane { writer.member("lane", lane) }
        if let expected { writer.member("expected", expected) }
        if let offset { writer.member("offset", offset) }
        if code == .unsupportedProtocol {
            writer.raw(",\"supported\":[")
            for (index, version) in ProtocolVersion.supported.enumerated() {
                if index > 0 { writer.raw(",") }
                writer.integer(Int64(version))
            }
            writer.raw("]")
        }
        writer.raw("}")
        return writer.bytes
    }

    private func writePast(to writer: inout JSONWriter) {
        if let epoch { writer.member("epoch", epoch) }
        if let survived { writer.member("survived", survived) }
        guard let lanes else { return }
        writer.raw(",\"lanes\":{")
        for (index, lane) in lanes.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(lane.key)
            writer.raw(":")
            writer.integer(lane.value)
        }
        writer.raw("}")
    }

    /// Reads problem details; `nil` where the bytes are something else, such as a proxy's page.
    package init?(from bytes: UnsafeRawBufferPointer) {
        guard let problem = try? Self.read(from: bytes) else { return nil }
        self = problem
    }

    private static func read(from bytes: UnsafeRawBufferPointer) throws(JSONError) -> Problem? {
        var reader = JSONReader(bytes)
        var code: ProblemCode?
        var problem = Problem(.internalError, "")
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "code": code = ProblemCode(rawValue: try reader.readString())
            case "detail": problem.detail = try reader.readString()
            case "reason": problem.reason = Reason(rawValue: try reader.readString())
            case "epoch": problem.epoch = try reader.readString()
            case "survived": problem.survived = try reader.readInteger()
            case "lanes": problem.lanes = try Self.readLanes(from: &reader)
            case "lane": problem.lane = try reader.readString()
            case "expected": problem.expected = try reader.readInteger()
            case "offset": problem.offset = try reader.readInteger()
            default: try reader.skip()
            }
        }
        try reader.finish()
        guard let code else { return nil }
        problem.code = code
        return problem
    }

    private static func readLanes(from reader: inout JSONReader) throws(JSONError) -> [String: Int64] {
        var lanes: [String: Int64] = [:]
        try reader.enterObject()
        while let name = try reader.nextMember() { lanes[reader.string(name)] = try reader.readInteger() }
        return lanes
    }
}

extension Problem {
    /// Makes the problem of a request that carried a broken document.
    package init(_ error: JSONError) {
        let place = error.path.isEmpty ? "at byte \(error.offset)" : "in `\(error.path.clipped)`"
        let limit = error.limit.map { "; \($0) are taken" } ?? ""
        let detail = "\(place.capitalizedFirst): \(error.reason.rawValue)\(limit)."
        switch error.reason {
        case .invalidIdentifier: self.init(.invalidIdentifier, detail)
        case .tooMany: self.init(.requestTooLarge, detail)
        case .outOfRange: self.init(.limitOutOfRange, detail)
        default: self.init(.malformedRequest, detail)
        }
    }
}

extension String {
    /// Bytes of a member's path that a caller is told: its names are the caller's own, and may be as long as its body.
    private static let toldBytes = 256

    fileprivate var clipped: String {
        utf8.count <= Self.toldBytes ? self : String(decoding: utf8.prefix(Self.toldBytes), as: UTF8.self) + "…"
    }

    fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
