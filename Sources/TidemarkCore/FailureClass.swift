/// The kind of a failure, which alone decides what the engine does next (B11).
package enum FailureClass: Hashable, Sendable, CaseIterable {
    /// The network, a busy server, an answer that was cut or came from somebody else: wait and try again.
    case transient
    /// The server failed on this request: wait longer, it is likely to fail again.
    case server
    /// The token is missing, bad or expired: the app must act, but a later attempt may carry a fresh token.
    case unauthenticated
    /// The token does not grant the scope: a later one may. So too where the scope was erased.
    case forbidden
    /// Nothing will change until the app or the server's operator does something.
    case needsApp
    /// The operator has stopped the scope on this device: it asks seldom whether that is over.
    case halted
    /// The server waits for other operations first: put the outbox in order and send again.
    case resolve
    /// The checkpoint can no longer be served: the scope is filled anew from a snapshot.
    case bootstrap

    /// The class of an HTTP status that is not a success.
    package init(status: Int) {
        self =
            switch status {
            case 401: .unauthenticated
            case 408, 425, 429, 502, 503, 504: .transient
            case 409: .resolve
            case 410: .bootstrap
            case 500...599: .server
            case 400..<500: .needsApp
            // 1xx and 3xx do not come from this server: a captive portal or a proxy stands between.
            default: .transient
            }
    }

    /// Whether the server took a look, and will not take the same another time either (B11).
    package var isRefusal: Bool {
        switch self {
        case .unauthenticated, .forbidden, .needsApp: true
        case .transient, .server, .halted, .resolve, .bootstrap: false
        }
    }

    /// Attempts that are skipped in the back-off's doubling: a failing server gets eight times the first wait.
    var backoffHeadStart: Int {
        switch self {
        case .server: 3
        case .transient, .unauthenticated, .forbidden, .needsApp, .halted, .resolve, .bootstrap: 0
        }
    }
}
