import CLibPQ
import Foundation

/// Where a server is, as libpq understands it. The password in it is for libpq alone.
struct ServerAddress: Sendable {
    private let url: String
    /// The passwords, which must not stand in any message.
    private let secrets: [String]

    /// - Throws: ``PostgresError`` without any part of what was given: a mistyped address may hold a password anywhere.
    init(_ url: String) throws(PostgresError) {
        guard url.hasPrefix("postgres://") || url.hasPrefix("postgresql://"), !url.utf8.contains(0) else {
            throw PostgresError(.address, "an address begins with postgres:// or postgresql://")
        }
        var reason: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(url, &reason) else {
            PQfreemem(reason)
            throw PostgresError(
                .address, "the address cannot be read; it is postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE")
        }
        defer { PQconninfoFree(options) }
        var secrets: [String] = []
        var option = options
        while let keyword = option.pointee.keyword {
            if String(cString: keyword).contains("password"), let value = option.pointee.val {
                secrets.append(String(cString: value))
            }
            option += 1
        }
        self.url = url
        self.secrets = secrets.filter { !$0.isEmpty }
    }

    /// The address may override the parameters before it, and not those behind it.
    ///
    /// A server that is cut off without a word is noticed by the kernel within about half a minute.
    private var parameters: [(String, String)] {
        [
            ("target_session_attrs", "read-write"), ("connect_timeout", "5"), ("keepalives_idle", "10"),
            ("keepalives_interval", "5"), ("keepalives_count", "3"), ("tcp_user_timeout", "20000"),
            ("fallback_application_name", "tidemark"), ("dbname", url), ("client_encoding", "UTF8"),
        ]
    }

    /// Connects, or waits for it in vain; blocks the thread.
    func connect() -> OpaquePointer? {
        let words = parameters.map { (strdup($0), strdup($1)) }
        defer {
            for word in words {
                free(word.0)
                free(word.1)
            }
        }
        let keywords = words.map { UnsafePointer($0.0) } + [nil]
        let values = words.map { UnsafePointer($0.1) } + [nil]
        return PQconnectdbParams(keywords, values, 1)
    }

    /// A message of libpq on one line, without what is secret.
    func told(_ message: UnsafePointer<CChar>?) -> String {
        var text = message.map { String(cString: $0) } ?? ""
        for secret in secrets { text = text.replacingOccurrences(of: secret, with: "…") }
        return text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            .joined(separator: "; ")
    }
}
