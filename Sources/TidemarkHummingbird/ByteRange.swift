#if Server
    /// The bytes that a `Range` asks for (RFC 9110, 14): one range of them, or all.
    enum ByteRange: Hashable {
        case whole
        case some(Range<Int64>)
        case unsatisfiable

        /// Of several ranges, and of what is no range of bytes, all bytes are sent: that is always right.
        ///
        /// - Parameters:
        ///   - header: the header.
        ///   - isStale: whether the reader has the beginning of something else.
        ///   - size: how many bytes there are.
        init(_ header: String?, unless isStale: Bool, of size: Int64) {
            self = .whole
            guard !isStale, let header, let equals = header.firstIndex(of: "="),
                header[..<equals].lowercased() == "bytes"
            else { return }
            let ends = header[header.index(after: equals)...].split(separator: "-", omittingEmptySubsequences: false)
            guard ends.count == 2, ends.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) else {
                return
            }
            // Numbers without end are larger than any blob.
            let (first, last) = (Int64(ends[0]) ?? .max, Int64(ends[1]) ?? .max)
            switch (ends[0].isEmpty, ends[1].isEmpty) {
            case (true, true): return
            case (true, false): self = last > 0 && size > 0 ? .some(max(0, size - last)..<size) : .unsatisfiable
            case (false, true): self = first < size ? .some(first..<size) : .unsatisfiable
            case (false, false):
                guard first <= last else { return }
                self = first < size ? .some(first..<min(last, size - 1) + 1) : .unsatisfiable
            }
        }
    }

    /// The place of a body in the whole, `bytes FIRST-LAST/SIZE` (RFC 9110, 14.4).
    struct ContentRange: Hashable {
        let first: Int64
        let length: Int64
        let size: Int64

        /// Digits of a number, at most: sums of two of them are numbers, too.
        private static let digits = 1...18

        /// - Returns: `nil` for what is not such a place.
        init?(_ header: String) {
            let words = header.split(separator: " ", omittingEmptySubsequences: false)
            guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
            let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2 else { return nil }
            let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
            guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]),
                let size = Self.number(parts[1]), first <= last, last < size
            else { return nil }
            (self.first, length, self.size) = (first, last - first + 1, size)
        }

        private static func number(_ text: Substring) -> Int64? {
            guard digits.contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                return nil
            }
            return Int64(text)
        }
    }
#endif
