/// What a reader of nudges asks for in a message over its socket (W97).
package enum SocketRequest: Hashable, Sendable {
    /// Nudges of these scopes, or no more of them. The names are as they came.
    case subscribe([String])
    case unsubscribe([String])
    /// To go on with another token.
    case authorize(token: String)

    private enum Kind: String { case subscribe, unsubscribe, authorize }

    /// - Parameter limit: names that one message may have.
    /// - Throws: `JSONError` where the bytes are no such message. Members that are not known are passed over.
    package init(from bytes: UnsafeRawBufferPointer, limit: Int) throws(JSONError) {
        var reader = JSONReader(bytes)
        var seen = MemberNames()
        var (kind, scopes, token): (Kind?, [String]?, String?) = (nil, nil, nil)
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader)
            let member = reader.string(name)
            do throws(JSONError) {
                switch member {
                case "type":
                    let start = reader.index
                    kind = Kind(rawValue: try reader.readString())
                    if kind == nil { throw JSONError(.wrongType, at: start) }
                case "scopes": scopes = try Self.readNames(from: &reader, limit: limit)
                case "token": token = try reader.readString()
                default: try reader.skip()
                }
            } catch {
                throw error.inside(member)
            }
        }
        try reader.finish()
        switch (kind, scopes, token) {
        case (.subscribe, let scopes?, _): self = .subscribe(scopes)
        case (.unsubscribe, let scopes?, _): self = .unsubscribe(scopes)
        case (.authorize, _, let token?): self = .authorize(token: token)
        case (nil, _, _): throw JSONError(.missingMember, at: reader.index).inside("type")
        case (.authorize, _, nil): throw JSONError(.missingMember, at: reader.index).inside("token")
        case (_, nil, _): throw JSONError(.missingMember, at: reader.index).inside("scopes")
        }
    }

    private static func readNames(from reader: inout JSONReader, limit: Int) throws(JSONError) -> [String] {
        var names: [String] = []
        try reader.enterArray()
        while try reader.nextElement() {
            guard names.count < limit else { throw JSONError(.outOfRange, at: reader.index, limit: limit) }
            names.append(try reader.readString())
        }
        return names
    }
}

/// What a server says over a socket of nudges, each a text of its own (W97).
package enum SocketEvent: Hashable, Sendable {
    case changes(Nudge)
    case subscribed(Scope)
    /// At the reader's wish, or for a reason.
    case unsubscribed(Scope, ProblemCode? = nil)
    case authorized
    /// A message, or one of the names in it, is not taken.
    case refused(scope: String?, Problem)

    package var json: [UInt8] {
        var writer = JSONWriter(capacity: 96)
        switch self {
        case .changes(let nudge):
            Self.begin(Nudge.event, nudge.scope.name, &writer)
            writer.member("head", nudge.head)
        case .subscribed(let scope): Self.begin("subscribed", scope.name, &writer)
        case .unsubscribed(let scope, let code):
            Self.begin("unsubscribed", scope.name, &writer)
            if let code { writer.member("code", code.rawValue) }
        case .authorized: Self.begin("authorized", nil, &writer)
        case .refused(let scope, let problem):
            Self.begin("refused", scope, &writer)
            writer.member("code", problem.code.rawValue)
            writer.member("detail", problem.detail)
            if let seconds = problem.retryAfter { writer.member("retryAfter", Int64(seconds)) }
        }
        writer.raw("}")
        return writer.bytes
    }

    private static func begin(_ event: String, _ scope: String?, _ writer: inout JSONWriter) {
        writer.raw("{\"event\":")
        writer.string(event)
        if let scope { writer.member("scope", scope) }
    }
}
