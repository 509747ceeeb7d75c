/// What stands in an attachment's column: the hash of the bytes, and how many there are (A12). The bytes themselves,
/// the blob, travel apart from records.
///
/// As text: `sha256:` with 64 lowercase hexadecimal digits, a colon and the size, as in `sha256:9f86…0a08:4`.
public struct BlobReference: Hashable, Sendable, CustomStringConvertible {
    /// The SHA-256 of the bytes, as 64 lowercase hexadecimal digits.
    public let hash: String
    /// How many bytes there are.
    public let size: Int64

    /// The largest size that a reference may name, in bytes: 1 TiB. Servers take less.
    public static let sizeLimit: Int64 = 1 << 40

    /// Reads a column's text, or `nil` where it is not spelled as above.
    public init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        let head = Self.algorithm.utf8.count + 1
        let digits = head + Self.hashLength + 1
        // A size has at most 13 digits.
        guard digits < bytes.count, bytes.count <= digits + 13, bytes[digits - 1] == UInt8(ascii: ":"),
            bytes.starts(with: Self.algorithm.utf8), bytes[head - 1] == UInt8(ascii: ":"),
            let size = Self.size(bytes[digits...])
        else { return nil }
        self.init(hash: String(decoding: bytes[head..<(digits - 1)], as: UTF8.self), size: size)
    }

    /// A number without a sign, and without a zero ahead of it.
    private static func size(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard digits.first != UInt8(ascii: "0") || digits.count == 1 else { return nil }
        var size: Int64 = 0
        for digit in digits {
            guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= digit else { return nil }
            size = size * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return size
    }

    /// Makes a reference, or `nil` where the hash is not spelled as above or the size is not from 0 to ``sizeLimit``.
    public init?(hash: String, size: Int64) {
        guard Self.isHash(hash), 0...Self.sizeLimit ~= size else { return nil }
        self.hash = hash
        self.size = size
    }

    /// The column's text.
    public var description: String { "\(Self.algorithm):\(hash):\(size)" }

    /// Whether a text is 64 lowercase hexadecimal digits.
    package static func isHash(_ text: some StringProtocol) -> Bool {
        text.utf8.count == hashLength
            && text.utf8.allSatisfy {
                UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0
            }
    }

    private static let algorithm = "sha256"
    private static let hashLength = 64
}
