import TidemarkCore

/// The hash that names a blob, in hexadecimal digits.
enum BlobHash {
    static func of(_ bytes: [UInt8]) -> String {
        SHA256.digest(bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}
