import TidemarkGzip
import TidemarkWire

extension FuzzTarget {
    static let bytes = [
        FuzzTarget("base64") { input in
            let bytes = Array(input)
            let text = Base64URL.encode(bytes)
            try hold(Base64URL.decode(text) == bytes, "bytes come back as others")
            try hold(text.utf8.elementsEqual(spelled(bytes)), "bytes are spelled otherwise than RFC 4648 says")
            guard let decoded = Base64URL.decode(input.text) else { return }
            try hold(Base64URL.encode(decoded).utf8.elementsEqual(input), "two texts are the same token")
        },
        FuzzTarget("utf8") { input in
            let isText = String(validating: input, as: UTF8.self) != nil
            try hold(isValidUTF8(input) == isText, "Swift says \(isText)")
            // The same bytes at every place in a word, since texts are cut out of larger ones.
            for start in 1..<min(9, input.count + 1) {
                let rest = UnsafeRawBufferPointer(rebasing: input[start...])
                try hold(isValidUTF8(rest) == (String(validating: rest, as: UTF8.self) != nil), "behind \(start)")
            }
        },
        FuzzTarget("gzip") { input in
            let (bytes, limit) = (Array(input), 1 << 14)
            if let inflated = try? Gzip.decompress(bytes, limit: limit) {
                try hold(inflated.count <= limit, "more came out than may")
                try inflate(inflated, limit: limit)
            }
            try inflate(Array(repeatElement(bytes, count: 5).joined()), limit: limit)
        },
    ]
}

/// What was packed comes out again, and not where there is a byte less room.
private func inflate(_ bytes: [UInt8], limit: Int) throws {
    let packed = Gzip.compress(bytes)
    if bytes.count <= limit {
        try hold(try Gzip.decompress(packed, limit: bytes.count) == bytes, "other bytes come out than went in")
    }
    guard !bytes.isEmpty else { return }
    do {
        _ = try Gzip.decompress(packed, limit: bytes.count - 1)
        throw BrokenProperty(description: "more came out than may")
    } catch let error as Gzip.Failure {
        try hold(error == .tooLarge(limit: bytes.count - 1), "what is too large is called corrupt")
    }
}

/// Six bits at a time, by hand.
private func spelled(_ bytes: [UInt8]) -> [UInt8] {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    return stride(from: 0, to: bytes.count * 8, by: 6).map { bit in
        let word = (0..<2).reduce(0) { $0 << 8 | (bit / 8 + $1 < bytes.count ? Int(bytes[bit / 8 + $1]) : 0) }
        return digits[word >> (10 - bit % 8) & 63]
    }
}
