import TidemarkCore
import TidemarkWire

/// The server's digest of a scope, or of one entity's key range in parts.
struct DigestAnswer: Hashable, Sendable {
    var scope = ""
    var at: String?
    var version: Version = 0
    var entities: [String: EntityDigest] = [:]
    /// Entities that cannot be compared, and why.
    var leftOut: [String: String] = [:]
    var parts: [DigestPart] = []
    /// Whether the range goes on behind the last part.
    var hasMore = false

    init(body: [UInt8]) throws(JSONError) {
        self = try body.reading { (reader: inout JSONReader) throws(JSONError) -> DigestAnswer in
            var answer = DigestAnswer()
            try answer.read(from: &reader)
            try reader.finish()
            return answer
        }
    }

    private init() {}

    /// Returns the server's digest of a table, whose name the server may spell in another case.
    func digest(of table: String) -> EntityDigest {
        entities[table] ?? entities.first { Identifier.isSameName($0.key, table) }?.value ?? EntityDigest()
    }

    /// Why a table cannot be compared; `nil` where it can.
    func reasonToLeaveOut(_ table: String) -> String? { leftOut.first { Identifier.isSameName($0.key, table) }?.value }

    private mutating func read(from reader: inout JSONReader) throws(JSONError) {
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "scope": scope = try reader.readString()
            case "at": at = try reader.readOptionalString()
            case "version": version = try reader.readInteger(in: 0...Int64.max)
            case "hasMore": hasMore = try reader.readBool()
            case "entities":
                try reader.enterObject()
                while let entity = try reader.nextMember() {
                    entities[reader.string(entity)] = try EntityDigest(from: &reader)
                }
            case "leftOut":
                try reader.enterObject()
                while let entity = try reader.nextMember() { leftOut[reader.string(entity)] = try reader.readString() }
            case "parts":
                try reader.enterArray()
                while try reader.nextElement() { parts.append(try DigestPart(from: &reader)) }
            default: try reader.skip()
            }
        }
    }
}
