#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Base64 in the alphabet of URLs and without padding (RFC 4648 section 5): how opaque tokens are spelled.
package enum Base64URL {
    package static func encode(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
    }

    /// Takes the one spelling that ``encode(_:)`` gives, so that no two texts are the same token.
    package static func decode(_ text: String) -> [UInt8]? {
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        let standard = text.replacing("-", with: "+").replacing("_", with: "/") + padding
        guard let data = Data(base64Encoded: standard), encode([UInt8](data)) == text else { return nil }
        return [UInt8](data)
    }
}
