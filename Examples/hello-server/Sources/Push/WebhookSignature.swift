import Crypto
import Foundation

// snippet: webhook-verify
/// Whether whoever knows the secret has sent this, and not long ago.
///
/// - Parameters:
///   - header: `Tidemark-Signature`, as it came.
///   - body: the bytes as they came, before anything has read them as JSON.
public func isSigned(_ header: String, body: Data, secret: String, now: Date = .now) -> Bool {
    var time = ""
    var mark = Data()
    for part in header.split(separator: ",") {
        let pair = part.split(separator: "=", maxSplits: 1)
        guard pair.count == 2 else { return false }
        if pair[0] == "t" { time = String(pair[1]) }
        if pair[0] == "v1" {
            let digits = pair[1].compactMap(\.hexDigitValue)
            guard digits.count == pair[1].count, digits.count.isMultiple(of: 2) else { return false }
            mark = Data(stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
        }
    }
    guard let seconds = Double(time), abs(now.timeIntervalSince1970 - seconds) < 300 else { return false }
    // In constant time: a comparison that ends at the first difference tells how much was right.
    return HMAC<SHA256>.isValidAuthenticationCode(
        mark, authenticating: Data("\(time).".utf8) + body, using: SymmetricKey(data: Data(secret.utf8)))
}
// end snippet
