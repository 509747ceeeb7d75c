import Hummingbird
import JWTKit
import TidemarkHummingbird
import TidemarkSQLite
import TidemarkServer

/// A web service of one's own, with sync in it: the routes of Tidemark beside any others, and one's own users.
@main
struct HelloServer {
    static func main() async throws {
        // 1. The log, in one file, and the engine over it. Users decide themselves where two of them edit one note.
        let store = try SQLiteStore(path: "hello.sqlite")
        let sync = SyncServer(
            store: store, entities: [.state("todo"), .state("note", conflict: .manual), .events("audit")],
            rules: [EntityRule("note", decide: shortTitle)])

        // 2. Tokens are this service's own affair; here they come from wherever the secret is known.
        let keys = JWTKeyCollection()
        await keys.add(hmac: HMACKey(from: try secret()), digestAlgorithm: .sha256)

        // 3. Sync is a collection of routes. Its one question: what may this caller do in this scope?
        let router = Router(context: UserContext.self)
        router.get("/") { _, _ in "Hello. Devices sync at /sync.\n" }
        router.group("sync").add(middleware: UserMiddleware(keys: keys)).addRoutes(
            sync.routes { scope, _, context in
                guard let user = context.user else { throw HTTPError(.unauthorized) }
                // Everybody owns one scope, and all may read the news.
                if scope.name == "user:\(user)" { return .readWrite(as: user) }
                return scope.name == "news" ? .read(as: user) : .none
            })

        // 4. The engine is a service among the application's: it keeps the log small while the server runs.
        let limits = ServerLimits()
        let app = Application(
            router: router, server: limits.http1(),
            configuration: limits.configuration(address: .hostname("127.0.0.1", port: port)), services: [sync])

        // 5. The service's own code writes through the same door as the devices, and all of them hear of it.
        try await sync.commit(to: "news") { changes in
            changes.upsert("todo", id: "welcome", ["title": "Read the documentation"])
        }
        try await app.runService()
    }

    private static var port: Int { Environment().get("HELLO_PORT").flatMap { Int($0) } ?? 8080 }

    /// A rule of this service's own, which devices that never heard of it obey.
    private static let titleLimit = 40

    @Sendable private static func shortTitle(_ edit: EntityRule.Edit) -> EntityRule.Decision {
        guard case .text(let title)? = edit.proposed["title"], title.count > titleLimit else { return .accept }
        return .reject(
            code: "title_too_long", detail: "A title has \(titleLimit) characters at most.", hint: "Shorten it.")
    }

    private static func secret() throws -> String {
        guard let secret = Environment().get("HELLO_SECRET"), secret.utf8.count >= 32 else { throw MissingSecret() }
        return secret
    }
}

struct MissingSecret: Error, CustomStringConvertible {
    var description: String { "set HELLO_SECRET to at least 32 random bytes" }
}

/// What a request carries along: who is asking.
struct UserContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    var user: String?

    init(source: Source) { coreContext = CoreRequestContextStorage(source: source) }
}

/// Finds out who is asking, from a bearer token.
struct UserMiddleware: RouterMiddleware {
    let keys: JWTKeyCollection

    func handle(
        _ request: Request, context: UserContext, next: (Request, UserContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        if let header = request.headers[.authorization], header.hasPrefix("Bearer ") {
            context.user = try? await keys.verify(String(header.dropFirst(7)), as: UserToken.self).sub.value
        }
        return try await next(request, context)
    }
}

/// The only claims that this service asks for.
struct UserToken: JWTPayload {
    var sub: SubjectClaim
    var exp: ExpirationClaim

    func verify(using algorithm: some JWTAlgorithm) throws { try exp.verifyNotExpired() }
}
