public import Foundation

/// What an operator asks of a device in one scope (W108). A newer one takes the place of the one before, of a stop and
/// of a slowing too.
public enum Remedy: Hashable, Sendable {
    /// Ask and send at most once in an interval, for a day at most. Fractions of a second are dropped.
    case slowDown(interval: Duration)
    /// Fill the scope anew, and keep all edits.
    case refill
    /// Compare the tables with the server's records once, and put right what differs.
    case verify
    /// Sync no more, and show the message, until another remedy comes. Edits are kept.
    case stop(message: String)
    /// Nothing: what was asked before is over.
    case clear

    /// The intervals that a slowing may ask for.
    public static let intervals: ClosedRange<Duration> = Duration.seconds(1)...Duration.seconds(86_400)
    /// Bytes of a stop's message, at most.
    public static let messageBytes = 500

    /// Its name on the wire.
    public var kind: String {
        switch self {
        case .slowDown: "slowDown"
        case .refill: "refill"
        case .verify: "verify"
        case .stop: "stop"
        case .clear: "clear"
        }
    }

    /// The same, as it travels and is kept: an interval in whole seconds.
    package var inWholeSeconds: Remedy {
        switch self {
        case .slowDown(let interval): .slowDown(interval: .seconds(interval.wholeSeconds))
        case .refill, .verify, .stop, .clear: self
        }
    }

    /// `nil` for a kind that this version does not know.
    ///
    /// - Parameter interval: in seconds.
    fileprivate init?(kind: String?, interval: Int64?, message: String?) {
        switch kind {
        case "slowDown":
            guard let interval else { return nil }
            self = .slowDown(interval: .seconds(interval))
        case "refill": self = .refill
        case "verify": self = .verify
        case "stop": self = .stop(message: message ?? "")
        case "clear": self = .clear
        default: return nil
        }
    }
}

/// A remedy as it travels: until the device says in its report what came of it.
package struct NumberedRemedy: Hashable, Sendable {
    /// A later remedy of the same device and scope has a higher one.
    package var number: Int64
    /// `nil`: this version does not know it.
    package var remedy: Remedy?

    package init(number: Int64, remedy: Remedy?) { (self.number, self.remedy) = (number, remedy) }

    /// Writes it as the value of a member.
    package func append(to writer: inout JSONWriter) {
        writer.raw("{\"number\":")
        writer.integer(number)
        if let remedy { writer.members(of: remedy) }
        writer.raw("}")
    }

    /// Reads a remedy. What it may not hold counts as absent, so that none keeps an answer from being taken; `nil` for
    /// a value that is no remedy.
    package static func read(from reader: inout JSONReader) throws(JSONError) -> NumberedRemedy? {
        guard reader.peek() == UInt8(ascii: "{") else {
            try reader.skipUnknown()
            return nil
        }
        var parts = RemedyParts()
        try reader.enterObject()
        while let name = try reader.nextMember() {
            let label = reader.string(name)
            if try !parts.read(label, from: &reader) { try reader.skipUnknown() }
        }
        return parts.number.map { NumberedRemedy(number: $0, remedy: parts.remedy) }
    }

    fileprivate struct RemedyParts {
        var number: Int64?
        private var kind: String?
        private var interval: Int64?
        private var message: String?

        /// Whether it is a member of a remedy.
        mutating func read(_ label: String, from reader: inout JSONReader) throws(JSONError) -> Bool {
            switch label {
            case "number": number = try reader.number(in: Limits.remedyNumbers)
            case "kind": kind = try reader.plainText(bytes: Limits.reportTextBytes)
            case "interval": interval = try reader.number(in: Remedy.intervals.wholeSeconds)
            case "message": message = try reader.plainText(bytes: Remedy.messageBytes)
            default: return false
            }
            return true
        }

        var remedy: Remedy? { Remedy(kind: kind, interval: interval, message: message) }
    }
}

/// A remedy as a store keeps it for one device in one scope.
public struct KeptRemedy: Hashable, Sendable {
    /// A later remedy of the same device and scope has a higher one.
    public var number: Int64
    /// The remedy.
    public var remedy: Remedy
    /// When the operator asked for it.
    public var asked: Date
    /// The device's word on it; `nil` while it has not told any.
    public var outcome: RemedyOutcome?
    /// When it told that.
    public var told: Date?

    /// Makes one that nobody has heard of yet.
    public init(number: Int64, remedy: Remedy, asked: Date) {
        (self.number, self.remedy, self.asked) = (number, remedy, asked)
    }

    /// Reads what ``bytes`` gave; `nil` for a kind that this version does not know.
    public init?(bytes: [UInt8]) {
        let kept = bytes.withUnsafeBytes { bytes -> KeptRemedy? in
            var reader = JSONReader(bytes)
            return try? Self.read(from: &reader)
        }
        guard let kept else { return nil }
        self = kept
    }

    /// The form in which a store keeps it.
    public var bytes: [UInt8] {
        var writer = JSONWriter(capacity: 128)
        writer.raw("{\"number\":")
        writer.integer(number)
        writer.members(of: remedy)
        writer.member("asked", asked.milliseconds)
        if let told { writer.member("told", told.milliseconds) }
        if let outcome {
            writer.memberName("outcome")
            outcome.append(to: &writer)
        }
        writer.raw("}")
        return writer.bytes
    }

    private static func read(from reader: inout JSONReader) throws(JSONError) -> KeptRemedy? {
        var parts = NumberedRemedy.RemedyParts()
        var (asked, told, outcome): (Int64, Int64?, RemedyOutcome?) = (0, nil, nil)
        try reader.enterObject()
        while let name = try reader.nextMember() {
            let label = reader.string(name)
            switch label {
            case "asked": asked = try reader.readInteger()
            case "told": told = try reader.readInteger()
            case "outcome": outcome = try RemedyOutcome.read(from: &reader)
            default: if try !parts.read(label, from: &reader) { try reader.skipUnknown() }
            }
        }
        guard let number = parts.number, let remedy = parts.remedy else { return nil }
        var kept = KeptRemedy(number: number, remedy: remedy, asked: Date(milliseconds: asked))
        (kept.told, kept.outcome) = (told.map(Date.init(milliseconds:)), outcome)
        return kept
    }
}

extension JSONWriter {
    /// Writes the members behind a remedy's number.
    fileprivate mutating func members(of remedy: Remedy) {
        member("kind", remedy.kind)
        switch remedy {
        case .slowDown(let interval): member("interval", interval.wholeSeconds)
        case .stop(let message): member("message", message)
        case .refill, .verify, .clear: break
        }
    }
}
