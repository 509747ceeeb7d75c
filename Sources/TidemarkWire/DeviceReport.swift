/// A device's word on itself in one scope, for the view that its operator has of all devices (W100). It is shown and
/// nothing else: no rule of the server's asks for it.
public struct DeviceReport: Hashable, Sendable {
    /// The device's edits that are pending, sent or blocked and are not in the request that tells of them, rounded
    /// down.
    public var pending: Int64 = 0
    /// How long the oldest of them had waited when it was told. Fractions of a second are not told, nor kept.
    public var oldest: Duration?
    /// Refused edits that wait for somebody's word, rounded down.
    public var refused: Int64 = 0
    /// Rows that the device keeps outside their tables, rounded down.
    public var quarantined: Int64 = 0
    /// The app's version, as the app says it.
    public var app: String?
    /// The library's version.
    public var library: String?
    /// The code of the failure that stands in the way at present.
    public var error: String?
    /// What came of the operator's last remedy.
    public var remedy: RemedyOutcome?

    /// Nothing waits, and nothing is known.
    public init() {}

    /// The ages that are told, in seconds: a century.
    package static let ages: ClosedRange<Int64> = 0...3_155_760_000

    /// The text, where a report may hold it.
    package static func text(_ text: String?) -> String? {
        text.flatMap { $0.isPlain(bytes: Limits.reportTextBytes) ? $0 : nil }
    }

    /// The same without what came of a remedy.
    package var withoutRemedy: DeviceReport {
        var report = self
        report.remedy = nil
        return report
    }
}

extension DeviceReport: CustomStringConvertible {
    /// A sentence for a log: `3 edits pending, the oldest for 60 seconds; 1 refused; network_unavailable.`
    public var description: String {
        let parts = [
            "\(counted(pending, "edit")) pending"
                + (oldest.map { ", the oldest for \(counted($0.wholeSeconds, "second"))" } ?? ""),
            refused > 0 ? "\(refused) refused" : nil, quarantined > 0 ? "\(quarantined) quarantined" : nil,
            error?.printable,
        ]
        return parts.compactMap(\.self).joined(separator: "; ") + "."
    }
}

extension String {
    /// Whether it is a text of one line, of a byte at least and so many at most, that moves nothing on a screen.
    package func isPlain(bytes limit: Int) -> Bool {
        guard (1...limit).contains(utf8.count) else { return false }
        return unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: false
            default: true
            }
        }
    }
}

extension DeviceReport {
    /// Reads a report: a number is brought into its range, and what is no number or text that a report may hold counts
    /// as absent. What no message may hold, such as an integer of more than 64 bits, is refused here too. `nil` for a
    /// value that is no object.
    static func read(from reader: inout JSONReader) throws(JSONError) -> DeviceReport? {
        guard reader.peek() == UInt8(ascii: "{") else {
            try reader.skipUnknown()
            return nil
        }
        var report = DeviceReport()
        var seen = MemberNames()
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader)
            switch reader.string(name) {
            case "pending": report.pending = try reader.number(in: Limits.reportCounts) ?? 0
            case "oldest": report.oldest = try reader.number(in: ages).map { .seconds($0) }
            case "refused": report.refused = try reader.number(in: Limits.reportCounts) ?? 0
            case "quarantined": report.quarantined = try reader.number(in: Limits.reportCounts) ?? 0
            case "app": report.app = try reader.plainText(bytes: Limits.reportTextBytes)
            case "library": report.library = try reader.plainText(bytes: Limits.reportTextBytes)
            case "error": report.error = try reader.plainText(bytes: Limits.reportTextBytes)
            case "remedy": report.remedy = try RemedyOutcome.read(from: &reader)
            default: try reader.skipUnknown()
            }
        }
        return report
    }

    /// Writes it as the value of a member. One that tells of a remedy alone says nothing of edits either.
    package func append(to writer: inout JSONWriter) {
        if let remedy, withoutRemedy == DeviceReport() {
            writer.raw("{\"remedy\":")
            remedy.append(to: &writer)
            return writer.raw("}")
        }
        writer.raw("{\"pending\":")
        writer.integer(pending)
        if let oldest { writer.member("oldest", oldest.wholeSeconds) }
        if refused > 0 { writer.member("refused", refused) }
        if quarantined > 0 { writer.member("quarantined", quarantined) }
        if let app { writer.member("app", app) }
        if let library { writer.member("library", library) }
        if let error { writer.member("error", error) }
        if let remedy {
            writer.memberName("remedy")
            remedy.append(to: &writer)
        }
        writer.raw("}")
    }
}

extension JSONReader {
    /// The nearest number of a range; `nil` for a value of another type.
    mutating func number(in range: ClosedRange<Int64>) throws(JSONError) -> Int64? {
        let first = peek()
        guard first == UInt8(ascii: "-") || (0x30...0x39).contains(first) else {
            try skipUnknown()
            return nil
        }
        switch try readNumber() {
        case .integer(let value): return min(max(value, range.lowerBound), range.upperBound)
        case .real(let value):
            return Int64(min(max(value, Double(range.lowerBound)), Double(range.upperBound)))
        }
    }

    /// A text of so many bytes that is plain (`isPlain`); `nil` for any other value.
    mutating func plainText(bytes limit: Int) throws(JSONError) -> String? {
        guard peek() == UInt8(ascii: "\"") else {
            try skipUnknown()
            return nil
        }
        let text = try readText()
        // The longest spelling of a byte is an escape of six.
        guard text.range.count <= 6 * limit else { return nil }
        let plain = string(text)
        return plain.isPlain(bytes: limit) ? plain : nil
    }
}

/// The version of this library, as devices tell it and the command prints it.
package enum LibraryVersion {
    package static let text = "0.1.0"
}
