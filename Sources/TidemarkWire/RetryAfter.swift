/// The wait that `Retry-After` asks for: seconds, or a date as HTTP writes it (RFC 9110, 10.2.3 and 5.6.7). `Backoff`
/// is written alike.
package enum RetryAfter {
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    /// - Parameters:
    ///   - header: the header's value.
    ///   - now: the moment at which the answer was made, in milliseconds since 1970.
    /// - Returns: the wait in milliseconds, 0 for what is past; `nil` for what is neither.
    package static func milliseconds(_ header: String, now: Int64) -> Int64? {
        let text = header.trimmingSpaces
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return date(header).map { max(0, $0.saturatingSubtracting(now)) }
        }
        let (wait, isTooMuch) = (Int64(text) ?? .max).multipliedReportingOverflow(by: 1000)
        return isTooMuch ? .max : wait
    }

    /// A date in any of the three forms that HTTP has had, in milliseconds since 1970.
    package static func date(_ header: String) -> Int64? {
        let words = header.split { " ,-:".contains($0) }.map { $0.lowercased() }
        let isOldest = words.count == 7 && Int64(words[2]) != nil && words[1].count == 3
        guard isOldest || words.count == 8 && words[7] == "gmt" else { return nil }
        let order = isOldest ? (year: 6, month: 1, day: 2, time: 3) : (year: 3, month: 2, day: 1, time: 4)
        guard let month = months.firstIndex(of: words[order.month]), let day = number(words[order.day], 1...31),
            let hour = number(words[order.time], 0...23), let minute = number(words[order.time + 1], 0...59),
            let second = number(words[order.time + 2], 0...60), var year = number(words[order.year], 0...9999)
        else { return nil }
        // A year of two digits is one from 1970 to 2069.
        if words[order.year].utf8.count == 2 { year += year < 70 ? 2000 : 1900 }
        let days = Timestamp.days(year: year, month: Int64(month) + 1, day: day)
        return (days * 86_400 + hour * 3600 + minute * 60 + second) * 1000
    }

    private static func number(_ word: String, _ range: ClosedRange<Int64>) -> Int64? {
        Int64(word).flatMap { range.contains($0) ? $0 : nil }
    }
}

extension String {
    fileprivate var trimmingSpaces: Substring {
        let start = self[...].drop { $0 == " " || $0 == "\t" }
        let length = start.reversed().drop { $0 == " " || $0 == "\t" }.count
        return start.prefix(length)
    }
}
