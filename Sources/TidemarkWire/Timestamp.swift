/// Milliseconds since 1970 written as RFC 3339 in UTC, without a formatter's allocations.
package enum Timestamp {
    /// From the year 0000 to 9999: RFC 3339 has no other.
    private static let spellable: ClosedRange<Int64> = -62_167_219_200_000...253_402_300_799_999

    /// Moments that the format cannot spell count as its first or last.
    package static func write(milliseconds: Int64, to writer: inout JSONWriter) {
        let moment = min(max(milliseconds, spellable.lowerBound), spellable.upperBound)
        let (days, milliseconds) = floorDivide(moment, 86_400_000)
        let (year, month, day) = civil(fromDays: days)
        writer.raw(byte: UInt8(ascii: "\""))
        digits(year, 4, to: &writer)
        writer.raw("-")
        digits(month, 2, to: &writer)
        writer.raw("-")
        digits(day, 2, to: &writer)
        writer.raw("T")
        digits(milliseconds / 3_600_000, 2, to: &writer)
        writer.raw(":")
        digits(milliseconds / 60_000 % 60, 2, to: &writer)
        writer.raw(":")
        digits(milliseconds / 1000 % 60, 2, to: &writer)
        writer.raw(".")
        digits(milliseconds % 1000, 3, to: &writer)
        writer.raw("Z\"")
    }

    package static func string(milliseconds: Int64) -> String {
        var writer = JSONWriter(capacity: 26)
        write(milliseconds: milliseconds, to: &writer)
        return String(decoding: writer.bytes.dropFirst().dropLast(), as: UTF8.self)
    }

    private static func digits(_ value: Int64, _ count: Int, to writer: inout JSONWriter) {
        var divisor: Int64 = 1
        for _ in 1..<count { divisor *= 10 }
        while divisor > 0 {
            writer.raw(byte: 0x30 + UInt8(truncatingIfNeeded: value / divisor % 10))
            divisor /= 10
        }
    }

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    /// A date in the proleptic Gregorian calendar to days since 1970; the way back of what follows.
    package static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let (era, yearOfEra) = floorDivide(month <= 2 ? year - 1 : year, 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Days since 1970 to a date in the proleptic Gregorian calendar, by eras of 400 years that begin in March.
    private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = floorDivide(days + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }
}
