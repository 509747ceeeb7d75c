#if Server
    import ArgumentParser
    import Foundation
    import TidemarkAsyncHTTPClient

    /// Where the server is, and with what token it is asked.
    struct ServerConnection: ParsableArguments {
        @Option(help: ArgumentHelp("The server's URL.", valueName: "url"))
        var server: String

        @Option(
            help: ArgumentHelp(
                "The access token; better in TIDEMARK_TOKEN, which other users cannot see.", valueName: "jwt"))
        var token: String?

        func transport() throws -> AsyncHTTPClientTransport {
            guard let url = URL(string: server), ["http", "https"].contains(url.scheme?.lowercased() ?? ""),
                url.host() != nil
            else {
                throw Failure("'\(server)' is not a server's URL", hint: "write --server http://127.0.0.1:8080")
            }
            guard let token = token ?? ProcessInfo.processInfo.environment["TIDEMARK_TOKEN"], !token.isEmpty else {
                throw Failure("no token is set", hint: "set TIDEMARK_TOKEN; `tidemark token` prints one")
            }
            return AsyncHTTPClientTransport(url) { token }
        }
    }
#endif
