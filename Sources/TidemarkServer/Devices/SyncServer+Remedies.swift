import Foundation
import TidemarkCore
public import TidemarkWire

extension SyncServer {
    /// Devices in scopes that one remedy is for, at most.
    private static let remedyLimit = 10_000

    /// Asks something of a device, in one scope or in all that this server knows it in. The device hears it with the
    /// next answer to an exchange of the scope, carries it out, and says so in its report; ``devices(_:)`` shows what
    /// came of it. A newer remedy takes the place of the one before, whatever came of that.
    ///
    /// ```swift
    /// try await server.remedy(.refill, for: "phone-4711")
    /// try await server.remedy(.stop(message: "Please update the app."), for: "phone-4711", in: "workspace:1")
    /// ```
    /// - Parameters:
    ///   - remedy: what is asked.
    ///   - client: the device's name.
    ///   - principal: its user, as tokens name him in `sub`; `nil` where only one user has a device of this name.
    ///   - scope: where; `nil`: in all scopes of the device, sub-scopes too.
    /// - Returns: the device in each of the scopes, with the remedy.
    /// - Throws: ``RemedyError``; errors of the store, after which some scopes may have the remedy: ask again.
    @discardableResult
    public nonisolated(nonsending) func remedy(
        _ remedy: Remedy, for client: String, of principal: String? = nil, in scope: Scope? = nil
    ) async throws -> [FleetDevice] {
        let remedy = remedy.inWholeSeconds
        try remedy.check()
        var query = FleetQuery()
        (query.client, query.principal, query.scope, query.limit) = (client, principal, scope, Self.remedyLimit)
        let found = try await store.devices(query).devices
        let users = Set(found.map(\.name.principal))
        guard users.count < 2 else { throw RemedyError.ambiguousDevice(client, users: users.sorted()) }
        let moment = configuration.moment()
        var asked: [FleetDevice] = []
        for var device in found {
            let name = device.name
            device.remedy = try await writeScope(device.scope) { writer in
                guard let known = try writer.standing(of: name) else { return nil }
                // The clock gives numbers that a store which was put back has not given out.
                let number = max(moment, (known.remedy?.number ?? 0).saturatingAdding(1))
                let kept = KeptRemedy(number: number, remedy: remedy, asked: Date(milliseconds: moment))
                try writer.note(kept, of: name)
                return kept
            }
            if device.remedy != nil { asked.append(device) }
        }
        guard !asked.isEmpty else { throw RemedyError.unknownDevice(client) }
        return asked
    }
}

/// Why nothing was asked of a device.
public struct RemedyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error, as a name that stays: compare it with the constants here, and treat others as your
    /// program treats an error that it does not know. A later version may add some.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name, such as `device_unknown`.
        public var rawValue: String

        /// Makes a code from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// The name.
        public var description: String { rawValue }

        /// The store knows no such device there.
        public static let deviceUnknown = Code("device_unknown")
        /// Several users have a device of this name.
        public static let deviceAmbiguous = Code("device_ambiguous")
        /// The message is empty, too long, or has control characters.
        public static let messageInvalid = Code("message_invalid")
        /// The interval is none that a device waits for.
        public static let intervalInvalid = Code("interval_invalid")

        /// All codes of this version, for documents and tests.
        public static let all: [Code] = [.deviceUnknown, .deviceAmbiguous, .messageInvalid, .intervalInvalid]
    }

    /// The kind of the error.
    public var code: Code
    /// The error's context, safe to show: names in it have no control characters.
    public var detail: String
    /// The remedy, for people.
    public var hint: String

    /// Makes an error, for tests.
    public init(_ code: Code, _ detail: String, hint: String) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }

    /// The detail.
    public var description: String { detail }
}

extension RemedyError {
    static func unknownDevice(_ name: String) -> RemedyError {
        RemedyError(
            .deviceUnknown, "there is no device \(name.printable) here",
            hint:
                "the list of devices has those that were heard of and may write, each in its scopes; name one of them")
    }

    static func ambiguousDevice(_ name: String, users: [String]) -> RemedyError {
        RemedyError(
            .deviceAmbiguous, "\(users.count) users have a device \(name.printable)",
            hint: "name the user too: one of \(users.prefix(5).joined(separator: ", ").printable)")
    }

    static let invalidMessage = RemedyError(
        .messageInvalid,
        "the message is not a text of one line, of 1 to \(Remedy.messageBytes) bytes, without control characters",
        hint: "say in one short line what the user is to do")

    static let invalidInterval = RemedyError(
        .intervalInvalid, "the interval is not from 1 second to 24 hours", hint: "name a time such as 30s, 10m or 2h")
}

extension Remedy {
    fileprivate func check() throws(RemedyError) {
        switch self {
        case .slowDown(let interval): guard Self.intervals.contains(interval) else { throw .invalidInterval }
        case .stop(let message): guard message.isPlain(bytes: Self.messageBytes) else { throw .invalidMessage }
        case .refill, .verify, .clear: break
        }
    }

    /// Whether it goes on once it is carried out.
    fileprivate var lasts: Bool {
        switch self {
        case .slowDown, .stop: true
        case .refill, .verify, .clear: false
        }
    }
}

extension KeptRemedy {
    /// Writes what the answer to a request with a report carries: the remedy until the device has told of it, and again
    /// where a device knows nothing of one that goes on, as one whose file was put back. A device that tells of a later
    /// one than the store knows hears that nothing is asked of it: the store was put back, and a device passes over
    /// numbers below its own, so that a stop would never end. It hears what the store knows next.
    static func answer(_ report: DeviceReport?, _ kept: KeptRemedy?, to writer: inout JSONWriter) {
        let word = report?.remedy
        if let word, word.number > (kept?.number ?? -1) {
            writer.memberName("remedy")
            writer.raw("null")
            return
        }
        guard let kept, word?.number != kept.number, kept.outcome == nil || kept.remedy.lasts && report != nil else {
            return
        }
        writer.memberName("remedy")
        NumberedRemedy(number: kept.number, remedy: kept.remedy).append(to: &writer)
    }

    /// Whether a device's word on it is another one than before.
    func isNews(_ word: RemedyOutcome) -> Bool { word.number == number && word != outcome }
}
