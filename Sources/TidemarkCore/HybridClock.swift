/// A moment on a hybrid logical clock: milliseconds since 1970 in the upper 48 bits, a counter in the lower 16.
///
/// The clock is that of Kulkarni, Demirbas, Madeppa, Avva and Leone, "Logical Physical Clocks" (OPODIS 2014): it never
/// falls behind what it has seen, and stays as close to the wall clock as that allows. As there, both parts stand in
/// one 64-bit number, so that stamps compare as numbers and, as text of fixed length, byte by byte.
package struct EditStamp: Hashable, Comparable, Sendable {
    /// Never negative.
    package private(set) var packed: Int64

    package static let zero = EditStamp(packed: 0)
    private static let countBits: Int64 = 16
    private static let lastCount: Int64 = 0xffff
    private static let lastMillisecond: Int64 = (1 << 47) - 1

    package init(packed: Int64) { self.packed = max(0, packed) }

    /// The first stamp of a millisecond. A moment before 1970 counts as the first millisecond of 1970, and one beyond
    /// the year 6429 as the last millisecond that a stamp can hold.
    package init(milliseconds: Int64) {
        packed = min(max(0, milliseconds), Self.lastMillisecond) << Self.countBits
    }

    /// The wall clock's part.
    package var milliseconds: Int64 { packed >> Self.countBits }

    package static func < (lhs: EditStamp, rhs: EditStamp) -> Bool { lhs.packed < rhs.packed }

    /// The next stamp; the last one of all is followed by itself.
    package var next: EditStamp { packed == .max ? self : EditStamp(packed: packed + 1) }

    /// A device's clock is believed between two bounds that the server knows: the device's last sync, and now. So one
    /// that stands in 2099 does not win for ever, and one that stands in 1970 does not lose for ever (D2, T37).
    package func clamped(from lastSync: Int64?, to now: Int64) -> EditStamp {
        let lower = lastSync.map(EditStamp.init(milliseconds:)) ?? .zero
        let upper = EditStamp(packed: EditStamp(milliseconds: now).packed | Self.lastCount)
        return min(max(self, lower), upper)
    }
}

// MARK: - As text

extension EditStamp {
    /// Sixteen hexadecimal digits in lower case.
    package var text: String {
        let digits = String(packed, radix: 16)
        return String(repeating: "0", count: max(0, 16 - digits.utf8.count)) + digits
    }

    /// `nil` for a text of another form.
    package init?(text: String) {
        let digits = text.utf8
        guard digits.count == 16, digits.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }),
            let packed = Int64(text, radix: 16)
        else { return nil }
        self.init(packed: packed)
    }
}

/// Stamps edits. Time goes in, stamps come out; each is later than all that the clock has given out or heard of.
package struct HybridClock: Hashable, Sendable {
    package private(set) var last: EditStamp

    package init(last: EditStamp = .zero) { self.last = last }

    /// An edit is made while the wall clock says `now`.
    package mutating func tick(at now: Int64) -> EditStamp {
        last = max(last.next, EditStamp(milliseconds: now))
        return last
    }

    /// A stamp is heard of: what is edited from here on is later.
    package mutating func receive(_ stamp: EditStamp) { last = max(last, stamp) }
}
