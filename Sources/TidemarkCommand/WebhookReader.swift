#if Server
    import Foundation
    import TidemarkHummingbird
    import TidemarkServer

    /// A webhook as the file declares it; its secret stands elsewhere.
    struct WebhookDeclaration {
        enum SecretSource: Hashable {
            case file(String)
            case variable(String)
        }

        var name: String
        /// Its query may be a secret too: it is never printed.
        var url: URL
        var secret: SecretSource
        var scopes: [String] = []
        var start = CommitHook.Start.now
        var timeout = Duration.seconds(10)
        var retries: Int?
    }

    /// Reads the `webhooks` of `tidemark.yaml`: addresses that are told of commits.
    enum WebhookReader {
        private static let allowed = ["url", "secretFile", "secretVariable", "scopes", "from", "timeout", "retries"]
        private static let timeouts = Duration.seconds(1) ... .seconds(60)
        /// Each costs connections, and rows in the store for each scope.
        static let limit = 16
        private static let patterns = 100

        static func webhooks(_ node: CheckedNode) throws -> [WebhookDeclaration] {
            let members = try node.members()
            guard members.count <= limit else { throw node.failure("there are more than \(limit) webhooks") }
            return try members.map { name, key, value in
                guard CommitHook.isName(name) else {
                    throw key.failure("`\(name)` cannot be a webhook's name", hint: "take \(CommitHook.nameHint)")
                }
                return try webhook(name, value)
            }
        }

        private static func webhook(_ name: String, _ node: CheckedNode) throws -> WebhookDeclaration {
            let members = try node.mapping(
                allowed: allowed,
                explaining: ["secret": "the secret comes from `secretVariable` or `secretFile`, never from this file"])
            guard let place = members["url"] else { throw node.failure("`\(name)` needs a `url`") }
            var webhook = WebhookDeclaration(name: name, url: try url(place), secret: try secret(members, node))
            if let place = members["scopes"] {
                webhook.scopes = try place.strings()
                guard (1...patterns).contains(webhook.scopes.count) else {
                    throw place.failure("`scopes` takes 1 to \(patterns) names", hint: "leave it out for all scopes")
                }
                for pattern in webhook.scopes where !TokenClaims.isPattern(pattern) {
                    throw place.failure(
                        "`\(pattern)` is neither a scope's name nor the beginning of one followed by `*`",
                        hint: "a sub-scope is told of with its scope")
                }
            }
            webhook.start = try members["from"]?.choice(of: CommitHook.Start.self) ?? .now
            if let place = members["timeout"] {
                webhook.timeout = try place.duration()
                guard timeouts.contains(webhook.timeout) else {
                    throw place.failure("`timeout` has to be from 1s to 60s")
                }
            }
            webhook.retries = try members["retries"]?.integer(in: 0...1000)
            return webhook
        }

        /// The address is checked when the server starts, and its text is in no complaint: it may hold a secret.
        private static func url(_ node: CheckedNode) throws -> URL {
            let text = try node.string()
            guard let parts = URLComponents(string: text), let url = parts.url, let host = parts.host, !host.isEmpty,
                parts.fragment == nil, let scheme = parts.scheme?.lowercased(), ["http", "https"].contains(scheme)
            else {
                throw node.failure("`url` is not the address of a receiver", hint: "write https://HOST/PATH")
            }
            guard (1...65_535).contains(parts.port ?? 443) else {
                throw node.failure("`url` has no port from 1 to 65535", hint: "write https://HOST:PORT/PATH")
            }
            guard parts.user == nil, parts.password == nil else {
                throw node.failure(
                    "`url` may not hold a name or a password", hint: "the receiver knows the sender by its signature")
            }
            guard scheme == "https" || isLoopback(host) else {
                throw node.failure(
                    "`url` has to begin with https://", hint: "http:// is taken for this machine only, to try it out")
            }
            return url
        }

        private static func isLoopback(_ host: String) -> Bool {
            let host = host.hasPrefix("[") ? host : host.contains(":") ? "[\(host)]" : host
            return (try? ListenAddress(host + ":0"))?.isLoopback == true
        }

        private static func secret(
            _ members: [String: CheckedNode], _ node: CheckedNode
        ) throws -> WebhookDeclaration.SecretSource {
            switch (try members["secretFile"]?.string(), try members["secretVariable"]?.string()) {
            case (let path?, nil): return .file(path)
            case (nil, let name?): return .variable(name)
            case (nil, nil), (_?, _?):
                throw node.failure(
                    "\(node.name) needs a `secretFile` or a `secretVariable`, and one of them only",
                    hint: "with it calls are signed; `openssl rand -base64 48` makes a secret")
            }
        }
    }
#endif
