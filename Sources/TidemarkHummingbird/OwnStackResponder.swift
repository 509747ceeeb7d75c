#if Server
    package import Hummingbird

    /// Answers each request in a task of its own. The task of a connection keeps the largest stack that it once had for
    /// as long as it lives, and a stream of nudges lives for days: its stack would be that of looking up the token, of
    /// the router and of the store (20 of the 32 KiB that an idle listener took).
    package struct OwnStackResponder<Inner: HTTPResponder>: HTTPResponder where Inner.Context: Sendable {
        private let inner: Inner

        package init(_ inner: Inner) { self.inner = inner }

        package func respond(to request: Request, context: Inner.Context) async throws -> Response {
            async let response = inner.respond(to: request, context: context)
            return try await response
        }
    }
#endif
