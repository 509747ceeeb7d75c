public import TidemarkWire

/// Why syncing stopped or has to wait. The description is safe to show and to log: it holds no row data, SQL or token.
///
/// Only errors whose ``recovery`` is `.needsApp` want code from the app; the others heal by themselves.
public struct SyncError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What went wrong: a closed list.
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// The network does not reach the server.
        case networkUnavailable = "network_unavailable"
        /// Something answered, but not as this server does: a captive portal, a proxy, a cut or foreign answer.
        case answerUnusable = "answer_unusable"
        /// The server is busy, starting or stopping.
        case serverUnavailable = "server_unavailable"
        /// The server failed on this request.
        case serverFailed = "server_failed"
        /// The token is missing, bad or expired.
        case unauthenticated
        /// The app's closure gave no token.
        case tokenUnavailable = "token_unavailable"
        /// The token does not grant this scope, or only reading.
        case scopeForbidden = "scope_forbidden"
        /// The scope was erased on the server, for good: its rows leave this device, and edits that had not arrived are
        /// orphaned.
        case scopeErased = "scope_erased"
        /// The server refuses the request as it stands; the detail says why.
        case requestRefused = "request_refused"
        /// The server has no room for what was added here; it waits on this device, and everything else goes on.
        case quotaExceeded = "quota_exceeded"
        /// The checkpoint can no longer be served: the scope is filled again by itself, and the outbox is kept.
        case checkpointExpired = "checkpoint_expired"
        /// Operations are missing from a lane; they are sealed again by themselves.
        case operationGap = "operation_gap"
        /// The server declares an entity otherwise than the app expects.
        case declarationMismatch = "declaration_mismatch"
        /// A table that cannot be synced as it is declared.
        case tableUnsupported = "table_unsupported"
        /// The engine was given scopes or tables that do not fit together.
        case configurationInvalid = "configuration_invalid"
        /// The SQLite library has no session extension, which makes changesets.
        case sessionsUnavailable = "sessions_unavailable"
        /// Edits that cannot be one group.
        case groupImpossible = "group_impossible"
        /// The file was written by a newer version of the library.
        case schemaUnsupported = "schema_unsupported"
        /// A question about a record of which nothing is known on this device.
        case recordUnknown = "record_unknown"
        /// A decision about a record that is deleted, of which too little is known to make it anew.
        case recordGone = "record_gone"
        /// The database on this device failed.
        case databaseFailed = "database_failed"
    }

    /// Who has to act.
    public enum Recovery: Hashable, Sendable {
        /// Nobody: the next attempt is scheduled.
        case wait
        /// The app, its user or its operator.
        case needsApp
    }

    /// What went wrong.
    public var code: Code
    /// What happened here.
    public var detail: String
    /// What can be done about it.
    public var hint: String
    /// The scope in which it happened.
    public var scope: Scope?

    init(_ code: Code, _ detail: String, hint: String, scope: Scope? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
        self.scope = scope
    }

    /// Who has to act.
    public var recovery: Recovery {
        switch code {
        case .networkUnavailable, .answerUnusable, .serverUnavailable, .serverFailed, .operationGap, .databaseFailed,
            .checkpointExpired, .quotaExceeded:
            .wait
        case .unauthenticated, .tokenUnavailable, .scopeForbidden, .scopeErased, .requestRefused,
            .declarationMismatch, .tableUnsupported, .configurationInvalid, .schemaUnsupported, .recordUnknown,
            .recordGone,
            .groupImpossible, .sessionsUnavailable:
            .needsApp
        }
    }

    /// One line for a log or a screen.
    public var description: String {
        let place = scope.map { " in scope \($0.name)" } ?? ""
        return "\(code.rawValue)\(place): \(detail)" + (hint.isEmpty ? "" : " \(hint)")
    }
}
