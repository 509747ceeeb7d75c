public import TidemarkWire

/// Why syncing stopped or has to wait. The description is safe to show and to log: it holds no row data, SQL or token.
///
/// Only errors whose ``recovery`` is `.needsApp` want code from the app; from the others the engine recovers by itself.
public struct SyncError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error, as a name that stays: compare it with the constants here, and treat others as your app treats
    /// an error that it does not know. A later version may add some.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name, such as `network_unavailable`.
        public var rawValue: String

        /// Makes a code from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// The name.
        public var description: String { rawValue }

        /// The network does not reach the server.
        public static let networkUnavailable = Code("network_unavailable")
        /// Something answered, but not as this server does: a captive portal, a proxy, a cut or foreign answer.
        public static let answerUnusable = Code("answer_unusable")
        /// The server is busy, starting or stopping.
        public static let serverUnavailable = Code("server_unavailable")
        /// The server failed on this request.
        public static let serverFailed = Code("server_failed")
        /// The token is missing, bad or expired.
        public static let unauthenticated = Code("unauthenticated")
        /// The app's closure gave no token.
        public static let tokenUnavailable = Code("token_unavailable")
        /// The token does not grant this scope, or only reading.
        public static let scopeForbidden = Code("scope_forbidden")
        /// The scope was erased on the server, for good: its rows leave this device, and edits that had not arrived are
        /// orphaned.
        public static let scopeErased = Code("scope_erased")
        /// The operator has stopped the scope on this device; the detail has what he says. Edits are kept.
        public static let stoppedByOperator = Code("stopped_by_operator")
        /// The server refuses the request as it stands; the detail says why.
        public static let requestRefused = Code("request_refused")
        /// The server has no room for what was added here; it waits on this device, and everything else goes on.
        public static let quotaExceeded = Code("quota_exceeded")
        /// The checkpoint can no longer be served: the scope is filled again by itself, and the outbox is kept.
        public static let checkpointExpired = Code("checkpoint_expired")
        /// Operations are missing from a lane; they are sealed again by themselves.
        public static let operationGap = Code("operation_gap")
        /// The server declares an entity otherwise than the app expects.
        public static let declarationMismatch = Code("declaration_mismatch")
        /// A table that cannot be synced as it is declared.
        public static let tableUnsupported = Code("table_unsupported")
        /// The engine was given scopes or tables that do not fit together.
        public static let configurationInvalid = Code("configuration_invalid")
        /// The SQLite library has no session extension, which makes changesets.
        public static let sessionsUnavailable = Code("sessions_unavailable")
        /// Edits that cannot be one group.
        public static let groupImpossible = Code("group_impossible")
        /// The file was written by a newer version of the library.
        public static let schemaUnsupported = Code("schema_unsupported")
        /// A question about a record of which nothing is known on this device.
        public static let recordUnknown = Code("record_unknown")
        /// A decision about a record that is deleted, of which too little is known to make it anew, or whose row is
        /// quarantined.
        public static let recordGone = Code("record_gone")
        /// A decision that writes what a trigger of the app's skips.
        public static let writeSkipped = Code("write_skipped")
        /// The engine was disconnected, and sends nothing any more.
        public static let engineDisconnected = Code("engine_disconnected")
        /// The file has edits that no server has taken, and they were not to be discarded.
        public static let unsentEdits = Code("unsent_edits")
        /// The bytes of an attachment are not on this device, and cannot be fetched now.
        public static let attachmentUnavailable = Code("attachment_unavailable")
        /// The folder of the attachments cannot be read or written, or the disk is full.
        public static let folderFailed = Code("folder_failed")
        /// The app has interrupted the database, or has it suspended.
        public static let databaseInterrupted = Code("database_interrupted")
        /// The database on this device failed.
        public static let databaseFailed = Code("database_failed")

        /// All codes of this version, for documents and tests.
        public static let all: [Code] = [
            .networkUnavailable, .answerUnusable, .serverUnavailable, .serverFailed, .unauthenticated,
            .tokenUnavailable, .scopeForbidden, .scopeErased, .stoppedByOperator, .requestRefused, .quotaExceeded,
            .checkpointExpired,
            .operationGap, .declarationMismatch, .tableUnsupported, .configurationInvalid, .sessionsUnavailable,
            .groupImpossible, .schemaUnsupported, .recordUnknown, .recordGone, .writeSkipped, .engineDisconnected,
            .unsentEdits, .attachmentUnavailable, .folderFailed, .databaseInterrupted, .databaseFailed,
        ]
    }

    /// The side that has to act.
    public enum Recovery: Hashable, Sendable {
        /// No side: the next attempt is scheduled.
        case wait
        /// The app, its user or its operator.
        case needsApp
    }

    /// The kind of error.
    public var code: Code
    /// The description of this failure, with its context.
    public var detail: String
    /// The remedy.
    public var hint: String
    /// The scope in which it happened.
    public var scope: Scope?

    /// Makes an error, for previews and tests.
    public init(_ code: Code, _ detail: String, hint: String = "", scope: Scope? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
        self.scope = scope
    }

    /// The side that has to act: the app, unless the engine recovers from the code by itself.
    public var recovery: Recovery { Self.transient.contains(code) ? .wait : .needsApp }

    private static let transient: Set<Code> = [
        .networkUnavailable, .answerUnusable, .serverUnavailable, .serverFailed, .operationGap, .databaseFailed,
        .databaseInterrupted, .checkpointExpired, .quotaExceeded, .folderFailed,
    ]

    /// A line for a log or a screen.
    public var description: String {
        let place = scope.map { " in scope \($0.name)" } ?? ""
        return "\(code)\(place): \(detail)" + (hint.isEmpty ? "" : " \(hint)")
    }
}
