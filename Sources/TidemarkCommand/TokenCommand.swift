#if Server
    import ArgumentParser
    import Foundation
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire

    struct TokenCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "token",
            abstract: "Print a token for a device or a program.",
            discussion: """
                The token is signed with the server's secret: TIDEMARK_SECRET, --secret-file, or the one that
                `tidemark serve` keeps beside its store. Where there is none, no token is printed; --make-secret makes
                one beside the store. A scope is given by its name, or by a beginning and `*`.

                EXAMPLES
                  tidemark token --store sqlite:sync.sqlite --sub ada --scope 'workspace:*=rw'
                  tidemark token --secret-file key --sub report --scope 'workspace:1=r' --ttl 10m
                  tidemark token --store sqlite:sync.sqlite --sub enricher --scope '*=rw' --role service
                """)

        @Option(help: "Who the token speaks for.")
        var sub: String

        @Option(
            name: .customLong("scope"),
            help: ArgumentHelp("A grant, r or rw; may be repeated.", valueName: "pattern=grant"))
        var scopes: [String]

        @Option(help: ArgumentHelp("How long it holds: 45s, 15m, 1h, 30d.", valueName: "time"))
        var ttl = "1h"

        @Option(
            help: ArgumentHelp("`service`: may write server-authoritative fields.", valueName: "role"),
            completion: .list(["service"]))
        var role: String?

        @Flag(help: "Make the secret beside the store, where no server has run on it yet.")
        var makeSecret = false

        @OptionGroup var secret: SecretOptions

        func validate() throws {
            guard 1...Access.principalLimit ~= sub.utf8.count else {
                throw ValidationError("--sub takes 1 to \(Access.principalLimit) bytes.")
            }
            guard !scopes.isEmpty else { throw ValidationError("Name at least one scope: --scope 'workspace:*=rw'.") }
            guard role == nil || role == "service" else { throw ValidationError("--role knows only 'service'.") }
            guard Duration(text: ttl) != nil else { throw ValidationError("--ttl takes 45s, 15m, 1h or 30d.") }
            _ = try grants()
        }

        func run() async throws {
            let settings = try Settings(flags: secret.flags)
            guard !makeSecret || (settings.secret == nil && settings[.secretFile] == nil) else {
                throw Failure(
                    "a secret is given with TIDEMARK_SECRET or a key file, and none has to be made",
                    hint: "leave --make-secret out")
            }
            let store = try settings[.store].map { try StoreAddress($0) }
            try store?.checkFolder()
            let key = try Secret.resolve(settings, store: store, isLoopback: true, mayMake: makeSecret)
            let seconds = Duration(text: ttl)?.wholeSeconds ?? 0
            let claims = TokenClaims(
                subject: sub, expires: Date.now.addingTimeInterval(Double(seconds)), scopes: try grants(),
                isService: role == "service")
            Console.line(try await TokenSigner(secret: key).token(claims))
        }

        private func grants() throws -> [String: TokenClaims.Grant] {
            var grants: [String: TokenClaims.Grant] = [:]
            for text in scopes {
                let parts = text.split(separator: "=", omittingEmptySubsequences: false)
                guard parts.count == 2, TokenClaims.isPattern(String(parts[0])),
                    let grant = TokenClaims.Grant(rawValue: String(parts[1]))
                else { throw ValidationError("'\(text)' is not a grant; write PATTERN=r or PATTERN=rw.") }
                grants[String(parts[0])] = grant
            }
            return grants
        }
    }
#endif
