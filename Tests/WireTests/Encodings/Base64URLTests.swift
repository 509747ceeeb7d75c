import Foundation
import Testing
import TidemarkWire

@Suite("Tokens in base64")
struct Base64URLTests {
    @Test("Bytes are spelled as Foundation spells them, in the other alphabet", arguments: 0..<40)
    func spelling(count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 89 &+ count &* 251) }
        let expected = Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
        #expect(Base64URL.encode(bytes) == expected)
        #expect(Base64URL.decode(expected) == bytes)
    }

    @Test("Bytes have one spelling", arguments: ["A", "AB", "AAB", "AA==", "A+A", "A/A", "AA A", "AA\n", "AAAAA", "Ä"])
    func others(text: String) { #expect(Base64URL.decode(text) == nil) }
}
