/// Everything that can be wrong with a request as a whole: a closed list ("Records by name" in Protocol.md lists it).
///
/// A request that is answered by one of these has applied nothing.
package enum ProblemCode: String, Hashable, Sendable, CaseIterable {
    /// The protocol version is not one that the server speaks.
    case unsupportedProtocol = "unsupported_protocol"
    /// Not JSON, a member of the wrong type, missing, or given twice.
    case malformedRequest = "malformed_request"
    /// A scope, entity, record id, client id or lane that is not of its grammar.
    case invalidIdentifier = "invalid_identifier"
    /// A number outside its limits.
    case limitOutOfRange = "limit_out_of_range"
    /// A checkpoint that is malformed, altered, or issued for another scope.
    case invalidCheckpoint = "invalid_checkpoint"
    /// No token, a bad one or an expired one.
    case unauthenticated = "unauthenticated"
    /// The token does not grant the scope, whether it exists or not.
    case scopeForbidden = "scope_forbidden"
    /// The token grants reading only.
    case scopeReadOnly = "scope_read_only"
    /// The operator has erased the scope, for good.
    case scopeErased = "scope_erased"
    /// There is nothing at this address.
    case notFound = "not_found"
    /// The address does not take this method.
    case methodNotAllowed = "method_not_allowed"
    /// The address speaks WebSocket, and the request does not ask for one as RFC 6455 has it.
    case upgradeRequired = "upgrade_required"
    /// Somebody else has written the record, and the entity leaves it to the caller who is right.
    case conflict = "conflict"
    /// The record is not, or not any more, as `If-Match` or `If-None-Match` asks for it.
    case preconditionFailed = "precondition_failed"
    /// The one operation of a request without lanes was refused; `rejection` says why.
    case operationRejected = "operation_rejected"
    /// A header is larger than the server takes.
    case headerTooLarge = "header_too_large"
    /// A lane's numbers skip some that the server has never seen.
    case operationGap = "operation_gap"
    /// The checkpoint can no longer be served; the device bootstraps again and keeps its outbox.
    case checkpointExpired = "checkpoint_expired"
    /// The device was unheard of for so long that nothing is kept for it any more; it does what an expired checkpoint
    /// asks for.
    case clientUnknown = "client_unknown"
    /// A scan in key order can no longer be continued; the device begins it anew.
    case snapshotExpired = "snapshot_expired"
    /// The address of a shared page does not hold any more; the device asks for the page with its token.
    case pageExpired = "page_expired"
    /// The digest as of this checkpoint can no longer be computed; pull to the end and compare again.
    case digestUnavailable = "digest_unavailable"
    /// The body, or what it inflates to, is larger than the server takes.
    case requestTooLarge = "request_too_large"
    /// The body is neither plain nor gzip.
    case unsupportedEncoding = "unsupported_encoding"
    /// The bytes of a blob are not those that its address names.
    case hashMismatch = "hash_mismatch"
    /// An upload does not go on where the part ends that is kept of it; `Upload-Offset` says where that is.
    case uploadOffsetMismatch = "upload_offset_mismatch"
    /// The scope, or the caller's part of it, has no room for the blob. An operation without room is `deferred` with
    /// ``RejectionCode/quotaExceeded``.
    case quotaExceeded = "quota_exceeded"
    /// Too many requests.
    case tooManyRequests = "too_many_requests"
    /// The server failed; nothing was applied.
    case internalError = "internal_error"
    /// The server is starting, stopping or out of room; nothing was applied.
    case unavailable = "unavailable"
}

extension ProblemCode {
    /// The HTTP status that goes with the code.
    package var status: Int {
        switch self {
        case .unsupportedProtocol, .malformedRequest, .invalidIdentifier, .limitOutOfRange, .invalidCheckpoint: 400
        case .unauthenticated: 401
        case .scopeForbidden, .scopeReadOnly, .scopeErased: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .operationGap, .digestUnavailable, .conflict, .uploadOffsetMismatch: 409
        case .checkpointExpired, .clientUnknown, .snapshotExpired, .pageExpired: 410
        case .preconditionFailed: 412
        case .requestTooLarge: 413
        case .unsupportedEncoding: 415
        case .operationRejected, .hashMismatch: 422
        case .upgradeRequired: 426
        case .tooManyRequests: 429
        case .headerTooLarge: 431
        case .internalError: 500
        case .unavailable: 503
        case .quotaExceeded: 507
        }
    }

    /// A short sentence for people, the same for every occurrence.
    package var title: String {
        switch self {
        case .unsupportedProtocol: "This protocol version is not spoken here"
        case .malformedRequest: "The request could not be read"
        case .invalidIdentifier: "A name is not of the allowed form"
        case .limitOutOfRange: "A number is outside its limits"
        case .invalidCheckpoint: "The checkpoint is not one of this scope"
        case .unauthenticated: "A valid token is needed"
        case .scopeForbidden: "The token does not grant this scope"
        case .scopeReadOnly: "The token grants reading only"
        case .scopeErased: "The scope was erased"
        case .notFound: "There is nothing at this address"
        case .methodNotAllowed: "This address does not take this method"
        case .upgradeRequired: "This address speaks WebSocket"
        case .conflict: "Somebody else has written the record"
        case .preconditionFailed: "The record is not as the request asks for it"
        case .operationRejected: "The write was refused"
        case .headerTooLarge: "A header is too large"
        case .operationGap: "Operations are missing from a lane"
        case .checkpointExpired: "The checkpoint can no longer be served"
        case .clientUnknown: "This device was not heard of for too long"
        case .snapshotExpired: "The snapshot can no longer be continued"
        case .pageExpired: "The page's address does not hold any more"
        case .digestUnavailable: "The digest as of this checkpoint is not available"
        case .requestTooLarge: "The request is too large"
        case .unsupportedEncoding: "The body's encoding is not supported"
        case .hashMismatch: "The bytes are not those that the address names"
        case .uploadOffsetMismatch: "The upload goes on elsewhere"
        case .quotaExceeded: "There is no room for the blob"
        case .tooManyRequests: "Too many requests"
        case .internalError: "The server failed"
        case .unavailable: "The server is not available"
        }
    }

    /// The remedy, for the caller.
    package var hint: String {
        switch self {
        case .unsupportedProtocol: "Send one of the versions listed in `supported`."
        case .malformedRequest: "Correct the member named in the detail."
        case .invalidIdentifier: "Names follow the grammar of the protocol's section 1."
        case .limitOutOfRange: "Stay within the limits named in the detail."
        case .invalidCheckpoint: "Bootstrap again and keep the outbox."
        case .unauthenticated: "Fetch a fresh token and try again."
        case .scopeForbidden: "Ask for a token that grants the scope."
        case .scopeReadOnly: "Ask for a token that grants `rw`."
        case .scopeErased: "Nothing of it comes back, nor its name: take another name for a new scope."
        case .notFound: "Check the address: the protocol lists them all."
        case .methodNotAllowed: "Check the method: the protocol lists them all."
        case .upgradeRequired: "Ask for a WebSocket of version 13, over HTTP/1.1, or for /sync/events."
        case .conflict: "Look at `record`, decide, and write again with its tag in If-Match."
        case .preconditionFailed: "Look at `record`, decide, and write again with its tag in If-Match."
        case .operationRejected: "Correct what the detail names; the same request will not be taken later either."
        case .headerTooLarge: "Send less in headers: x-apiomat-delta takes one timestamp in the place of a map."
        case .operationGap: "Send the lane's operations from `expected` on, or seal them again in a new lane."
        case .checkpointExpired, .clientUnknown: "Bootstrap again and keep the outbox."
        case .snapshotExpired: "Begin the snapshot anew."
        case .pageExpired: "Ask for the page again at /sync/snapshot."
        case .digestUnavailable: "Pull to the end and compare again."
        case .requestTooLarge: "Send fewer operations at once."
        case .unsupportedEncoding: "Send the body plain or with Content-Encoding: gzip."
        case .hashMismatch: "Hash the bytes again; what had been kept of them is dropped."
        case .uploadOffsetMismatch: "Go on at Upload-Offset, or send the blob from its beginning."
        case .quotaExceeded: "Remove records that name blobs and wait, or ask the operator for more."
        case .tooManyRequests, .unavailable: "Try again after the time given in Retry-After."
        case .internalError: "Try again later; the server's log has the details."
        }
    }

    /// Whether the same request may succeed later without anyone changing anything.
    package var isRetryable: Bool {
        switch self {
        case .tooManyRequests, .internalError, .unavailable: true
        case .unsupportedProtocol, .malformedRequest, .invalidIdentifier, .limitOutOfRange, .invalidCheckpoint,
            .unauthenticated, .scopeForbidden, .scopeReadOnly, .scopeErased, .notFound, .methodNotAllowed,
            .upgradeRequired, .operationGap, .checkpointExpired, .clientUnknown, .snapshotExpired, .pageExpired,
            .digestUnavailable, .requestTooLarge, .unsupportedEncoding, .conflict, .preconditionFailed,
            .operationRejected, .headerTooLarge, .hashMismatch, .uploadOffsetMismatch, .quotaExceeded:
            false
        }
    }
}
