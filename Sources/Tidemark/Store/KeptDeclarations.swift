import GRDB
import TidemarkWire

/// The operator's declarations as they were last fetched: the next start asks whether they are still the same.
struct KeptDeclarations: Sendable {
    /// The server's name for it (`ETag`).
    var tag: String
    var declarations: Declarations

    private static let tagKey = "declarations_tag"
    private static let bodyKey = "declarations"
    /// Bytes of a document that is kept, at most. A larger one is fetched at each start.
    private static let bodyLimit = 1 << 20

    /// `nil` where there is none that can be read: then it is fetched whole.
    static func read(_ db: Database) throws -> KeptDeclarations? {
        guard let tag = try Meta.get(db, tagKey), let body = try Meta.get(db, bodyKey),
            let declarations = try? Array(body.utf8).withUnsafeBytes({ try Declarations(from: $0) })
        else { return nil }
        return KeptDeclarations(tag: tag, declarations: declarations)
    }

    /// The server's name for what is kept.
    static func tag(_ db: Database) throws -> String? { try Meta.get(db, tagKey) }

    static func write(_ db: Database, _ body: [UInt8], tag: String) throws {
        guard body.count <= bodyLimit else { return }
        try Meta.set(db, bodyKey, String(decoding: body, as: UTF8.self))
        try Meta.set(db, tagKey, tag)
    }
}
