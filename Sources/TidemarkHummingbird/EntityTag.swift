#if Server
    import TidemarkWire

    /// A strong entity tag (RFC 9110, 8.8.3): the same tag, the same bytes on the wire. So a body and its compressed
    /// forms have tags of their own.
    struct EntityTag: Hashable {
        /// With its quotes.
        let text: String

        init(text: String) { self.text = text }

        init(of body: [UInt8], as coding: ContentCoding) {
            let sum = Fingerprint(of: body)
            let digits = [sum.high, sum.low].map { String($0, radix: 36) }.joined(separator: "-")
            text = "\"\(digits)\(coding.tagMark)\""
        }

        /// Whether an `If-None-Match` names this tag, or any. A weak tag counts as its strong one there (13.1.2).
        func isNamed(in header: String?) -> Bool {
            switch header.flatMap(EntityTagList.init) {
            case .any: true
            case .these(let tags): tags.contains { "\"\($0.tag)\"" == text }
            case nil: false
            }
        }
    }

    /// The list of a condition (RFC 9110, 8.8.3 and 13.1): any record, or those with one of these tags, without quotes.
    enum EntityTagList: Hashable {
        case any
        case these([Item])

        struct Item: Hashable {
            var tag: String
            var isWeak: Bool
        }

        /// - Returns: `nil` for what is not such a list.
        init?(_ header: String) {
            var rest = Substring(header).drop(while: Self.isBlank)
            if rest.first == "*" {
                guard rest.dropFirst().allSatisfy(Self.isBlank) else { return nil }
                self = .any
                return
            }
            var items: [Item] = []
            while true {
                // Empty elements count for nothing.
                rest = rest.drop { Self.isBlank($0) || $0 == "," }
                guard !rest.isEmpty else { break }
                let isWeak = rest.hasPrefix("W/")
                if isWeak { rest = rest.dropFirst(2) }
                guard rest.first == "\"", let end = rest.dropFirst().firstIndex(of: "\"") else { return nil }
                let tag = rest[rest.startIndex..<end].dropFirst()
                guard tag.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7f }) else { return nil }
                items.append(Item(tag: String(tag), isWeak: isWeak))
                rest = rest[end...].dropFirst().drop(while: Self.isBlank)
                guard rest.isEmpty || rest.first == "," else { return nil }
            }
            guard !items.isEmpty else { return nil }
            self = .these(items)
        }

        private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
    }

    /// 128 bits of a body, mixed as MurmurHash3 does. Nobody's safety rests on it, and pages are hashed on the way out,
    /// where a cryptographic sum would cost more than making them.
    struct Fingerprint: Hashable {
        private(set) var high: UInt64 = 0
        private(set) var low: UInt64 = 0

        init(of bytes: [UInt8]) {
            bytes.withUnsafeBytes { buffer in
                let whole = buffer.count & ~15
                for offset in stride(from: 0, to: whole, by: 16) {
                    mix(
                        UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: offset, as: UInt64.self)),
                        UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)))
                }
                var last: (UInt64, UInt64) = (0, 0)
                for (index, byte) in buffer[whole...].enumerated() {
                    let word = UInt64(byte) << (index % 8 * 8)
                    if index < 8 { last.0 |= word } else { last.1 |= word }
                }
                mix(last.0, last.1)
            }
            high ^= UInt64(bytes.count)
            low ^= UInt64(bytes.count)
            high &+= low
            low &+= high
            high = Self.finish(high)
            low = Self.finish(low)
            high &+= low
            low &+= high
        }

        private mutating func mix(_ first: UInt64, _ second: UInt64) {
            high ^= Self.turned(first &* 0x87c3_7b91_1142_53d5, 31) &* 0x4cf5_ad43_2745_937f
            high = (Self.turned(high, 27) &+ low) &* 5 &+ 0x52dc_e729
            low ^= Self.turned(second &* 0x4cf5_ad43_2745_937f, 33) &* 0x87c3_7b91_1142_53d5
            low = (Self.turned(low, 31) &+ high) &* 5 &+ 0x3849_5ab5
        }

        private static func turned(_ word: UInt64, _ count: UInt64) -> UInt64 { word << count | word >> (64 - count) }

        private static func finish(_ word: UInt64) -> UInt64 {
            var word = (word ^ word >> 33) &* 0xff51_afd7_ed55_8ccd
            word = (word ^ word >> 33) &* 0xc4ce_b9fe_1a85_ec53
            return word ^ word >> 33
        }
    }
#endif
