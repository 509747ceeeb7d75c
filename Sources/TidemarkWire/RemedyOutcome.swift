/// A device's report of how a remedy ended.
public struct RemedyOutcome: Hashable, Sendable {
    /// How it ended.
    public enum Result: String, Hashable, Sendable, CaseIterable {
        /// It was carried out: a stop and a slowing have begun, a refill and a comparison have ended.
        case done
        /// It was begun, and could not be ended.
        case failed
        /// It was not begun: the device does not know it.
        case refused
    }

    /// The remedy's.
    public var number: Int64
    /// How it ended.
    public var result: Result
    /// Why, where it was not done.
    public var code: String?
    /// Records that differed from the server's when they were compared; `nil` where they were not.
    public var differing: Int64?
    /// Differing records that were put right.
    public var repaired: Int64?

    /// Makes an outcome.
    public init(_ number: Int64, _ result: Result, code: String? = nil) {
        (self.number, self.result, self.code) = (number, result, code)
    }

    /// Writes it as the value of a member.
    package func append(to writer: inout JSONWriter) {
        writer.raw("{\"number\":")
        writer.integer(number)
        writer.member("outcome", result.rawValue)
        if let code { writer.member("code", code) }
        if let differing { writer.member("differing", differing) }
        if let repaired { writer.member("repaired", repaired) }
        writer.raw("}")
    }

    /// Reads an outcome, as a report is read; `nil` for what says no number and no outcome.
    package static func read(from reader: inout JSONReader) throws(JSONError) -> RemedyOutcome? {
        guard reader.peek() == UInt8(ascii: "{") else {
            try reader.skipUnknown()
            return nil
        }
        var (number, result): (Int64?, Result?)
        var outcome = RemedyOutcome(0, .done)
        var seen = MemberNames()
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader)
            switch reader.string(name) {
            case "number": number = try reader.number(in: Limits.remedyNumbers)
            case "outcome":
                result = try reader.plainText(bytes: Limits.reportTextBytes).flatMap(Result.init(rawValue:))
            case "code": outcome.code = try reader.plainText(bytes: Limits.reportTextBytes)
            case "differing": outcome.differing = try reader.number(in: Limits.reportCounts)
            case "repaired": outcome.repaired = try reader.number(in: Limits.reportCounts)
            default: try reader.skipUnknown()
            }
        }
        guard let number, let result else { return nil }
        (outcome.number, outcome.result) = (number, result)
        return outcome
    }
}

extension RemedyOutcome: CustomStringConvertible {
    /// A sentence for a log: `Remedy 7: failed, network_unavailable.`
    public var description: String {
        "Remedy \(number): \(result.rawValue)\(code.map { ", \($0.printable)" } ?? "")."
    }
}
