package import TidemarkWire

/// An opaque text that only this server could have made: some bytes, and a mark that binds them to a purpose, a scope
/// and the store's key. Authorisation rests on it only where a shared page's address is one; of the others the mark
/// only stops what was altered or mixed up.
package enum SealedToken {
    private static let markLength = 16
    /// No token of ours comes near it: a record id has 128 bytes, and a page's address has names of a scope and an
    /// entity beside it.
    private static let lengthLimit = 1024

    package enum Purpose: String, Hashable, Sendable {
        case checkpoint, snapshot, cursor, page
    }

    /// - Parameter scope: what it is bound to; `nil` where the bytes themselves say which scope they are of.
    package static func seal(_ body: [UInt8], _ purpose: Purpose, scope: Scope?, key: [UInt8]) -> String {
        Base64URL.encode(body + mark(body, purpose, scope, key))
    }

    /// The bytes that were sealed; `nil` where the text was altered, or made for something else.
    package static func open(_ text: String, _ purpose: Purpose, scope: Scope?, key: [UInt8]) -> ByteReader? {
        guard text.utf8.count <= lengthLimit, let bytes = Base64URL.decode(text), bytes.count > markLength
        else { return nil }
        let body = Array(bytes.dropLast(markLength))
        // Looks at every byte, so that the time taken says nothing about where a forgery went wrong.
        let difference = zip(mark(body, purpose, scope, key), bytes.suffix(markLength)).reduce(0) { $0 | ($1.0 ^ $1.1) }
        return difference == 0 ? ByteReader(body) : nil
    }

    private static func mark(_ body: [UInt8], _ purpose: Purpose, _ scope: Scope?, _ key: [UInt8]) -> [UInt8] {
        let bound = Array("\(purpose.rawValue)\0\(scope?.name ?? "")\0".utf8) + body
        return Array(SHA256.authenticate(bound, key: key).prefix(markLength))
    }
}
