#if Server
    import Foundation
    import PostgresCluster
    import Testing
    import TidemarkCore
    import TidemarkServer

    @testable import TidemarkCommand
    import TidemarkWire

    /// Webhooks of `tidemark serve`, a process of its own, and a receiver on loopback.
    @Suite("Webhooks", .serialized, .timeLimit(.minutes(5)))
    struct WebhookTests {
        private static let secret = "0123456789abcdef0123456789abcdef"
        /// How often a test pushes at most until a webhook has begun.
        private static let pushLimit = 1000

        let bench: CommandBench
        init() throws {
            bench = try CommandBench()
            try Self.secret.write(toFile: bench.path("hook.key"), atomically: true, encoding: .utf8)
        }

        @Test("A call says which scope has which head, no more, and its signature holds")
        func signed() async throws {
            try await WebhookReceiver.run { receiver in
                let server = try await server([hook("push", receiver)])
                let caller = try await caller(server)
                try await push(1, to: "w:1", caller)
                let call = try await receiver.call { $0.scope == "w:1" }
                #expect(Set(call.members.keys) == ["scope", "head", "epoch", "changes", "time"])
                #expect(call.members["head"] as? Int == 1 && call.members["changes"] as? Int == 1)
                #expect(call.headers["content-type"] == "application/json")
                #expect(call.headers["tidemark-delivery"] == "w:1@1")
                let signature = try #require(call.headers["tidemark-signature"])
                let time = try #require(signature.split(separator: ",").first.flatMap { Int64($0.dropFirst(2)) })
                #expect(abs(Double(time) - Date().timeIntervalSince1970) < 600)
                #expect(
                    signature
                        == Webhook.signature(of: call.body, at: time, secret: Array(Self.secret.utf8)))
                #expect(await server.stop() == 0)
            }
        }

        @Test("The signature is HMAC-SHA256 of the time, a dot and the body, and the page shows one that holds")
        func signature() throws {
            let notice = CommitNotice(
                scope: "user:ada", head: 1054, epoch: "AQID", changes: 4, time: Date(milliseconds: 1_767_225_599_000))
            let body = Webhook.body(notice)
            let signature = Webhook.signature(of: body, at: 1_767_225_600, secret: Array(Self.secret.utf8))
            // By `openssl dgst -sha256 -hmac`.
            #expect(
                signature == "t=1767225600,v1=3e288c655b609909bbb53a8cc9fd87f72dcefa1f31dc9946519791c4b04faf54")
            let page = URL(filePath: #filePath).appending(path: "../../../../Documentation/Webhooks.md").standardized
            let text = try String(contentsOf: page, encoding: .utf8)
            #expect(text.contains("Tidemark-Signature: \(signature)\n\n\(body)\n"))
        }

        @Test("A call that fails is sent again, and the heads of a scope come in order")
        func failing() async throws {
            try await WebhookReceiver.run { receiver in
                // The first two calls of each scope.
                receiver.answer { call, count in
                    .status(count > 2 ? 200 : call.scope == "w:1" ? 503 : 429, retryAfter: "0")
                }
                let server = try await server([hook("push", receiver)])
                let caller = try await caller(server)
                for number in 1...3 {
                    for scope in ["w:1", "w:2"] { try await push(number, to: scope, caller) }
                }
                for scope in ["w:1", "w:2"] {
                    _ = try await receiver.call { $0.scope == scope && $0.head == 3 && $0.isTaken }
                    let heads = receiver.calls.filter { $0.scope == scope }.map(\.head)
                    #expect(heads == heads.sorted())
                }
                #expect(await server.stop() == 0)
                #expect(server.process.standardError.contains("status 503"))
            }
        }

        @Test("The health of a server says how many scopes its webhooks have not told, and no name")
        func health() async throws {
            try await WebhookReceiver.run { receiver in
                receiver.answer { _, _ in .status(503) }
                let server = try await server([hook("push", receiver)])
                let caller = try await caller(server)
                for scope in ["w:1", "w:2"] { try await push(1, to: scope, caller) }
                try await poll {
                    try await caller.get("/health").text.contains(#""hooks":{"behind":2,"oldestSeconds":"#)
                }
                receiver.answer { _, _ in .status(200) }
                try await poll {
                    try await caller.get("/health").text == #"{"live":true,"ready":true,"hooks":{"behind":0}}"#
                }
                #expect(await server.stop() == 0)
            }
        }

        @Test("A receiver that is not there is told once it is")
        func absent() async throws {
            let port = try ReservedPort()
            let url = "http://127.0.0.1:\(port.number)/hook"
            let server = try await server(["push: {url: \"\(url)\", secretFile: \(bench.path("hook.key"))}"])
            let caller = try await caller(server)
            // The webhook tells only what is pushed once it has begun, so one push may be too early.
            var number = 0
            try await poll(every: .milliseconds(50)) {
                if server.process.standardError.contains("did not take the news") { return true }
                try #require(number < Self.pushLimit, "the webhook has not begun")
                number += 1
                try await push(number, to: "w:1", caller)
                return false
            }
            let head = number
            try await WebhookReceiver.run(at: port.number) { receiver in
                _ = try await receiver.call { $0.scope == "w:1" && $0.head == head && $0.isTaken }
                #expect(await server.stop() == 0)
            }
        }

        @Test("Commits do not wait for a receiver that never answers, and other webhooks are called")
        func hanging() async throws {
            try await WebhookReceiver.runTwo { receiver, other in
                receiver.answer { _, _ in .never }
                let server = try await server([hook("hanging", receiver), hook("other", other)])
                let caller = try await caller(server)
                try await push(1...200, to: "w:1", caller)
                _ = try await other.call { $0.head == 200 }
                _ = try await receiver.call { $0.scope == "w:1" }
                let isTaken = receiver.calls.contains { $0.isTaken }
                #expect(!isTaken)
                #expect(await server.stop() == 0)
            }
        }

        @Test("A receiver that answers late is asked again, and hears the newest head")
        func late() async throws {
            try await WebhookReceiver.run { receiver in
                receiver.answer { _, count in count == 1 ? .never : .status(204) }
                let server = try await server([hook("push", receiver, "timeout: 1s")])
                let caller = try await caller(server)
                try await push(1, to: "w:1", caller)
                _ = try await receiver.call { $0.head == 1 }
                try await push(2, to: "w:1", caller)
                _ = try await receiver.call { $0.head == 2 && $0.isTaken }
                #expect(await server.stop() == 0)
                #expect(server.process.standardError.contains("no answer in time"))
            }
        }

        @Test("A redirection is not followed, and a receiver that is gone is called no more")
        func redirected() async throws {
            try await WebhookReceiver.runTwo { receiver, elsewhere in
                receiver.answer { call, _ in
                    call.scope == "w:1" ? .redirect(elsewhere.url) : .status(410)
                }
                let server = try await server([hook("push", receiver)])
                let caller = try await caller(server)
                try await push(1, to: "w:1", caller)
                _ = try await server.errors { $0.contains("status 307") }
                try await push(1, to: "w:2", caller)
                _ = try await server.errors { $0.contains("wants no more calls") }
                let count = receiver.calls.count
                try await push(2...20, to: "w:2", caller)
                #expect(await server.stop() == 0)
                #expect(receiver.calls.count == count)
                #expect(elsewhere.calls.isEmpty)
            }
        }

        @Test("A server that was killed tells the heads that are left when it runs again")
        func killed() async throws {
            try await WebhookReceiver.run { receiver in
                receiver.answer { _, _ in .never }
                let hooks = [hook("push", receiver)]
                let server = try await server(hooks)
                let caller = try await caller(server)
                for scope in ["w:1", "w:2", "w:3"] { try await push(1, to: scope, caller) }
                _ = try await receiver.call { $0.scope == "w:1" }
                await server.process.end()
                receiver.answer { _, _ in .status(200) }
                let again = try await self.server(hooks)
                for scope in ["w:1", "w:2", "w:3"] {
                    _ = try await receiver.call { $0.scope == scope && $0.head == 1 && $0.isTaken }
                }
                #expect(await again.stop() == 0)
            }
        }

        @Test("Of two servers on one PostgreSQL one calls; when it is killed the other tells what it did not")
        func nodes() async throws {
            let cluster = try await offPool { try PostgresCluster() }
            try await WebhookReceiver.run { receiver in
                let hooks = [hook("push", receiver)]
                let first = try await server(hooks, postgres: cluster)
                let caller = try await caller(first)
                try await push(1, to: "w:1", caller)
                _ = try await receiver.call { $0.head == 1 && $0.isTaken }
                let second = try await server(hooks, postgres: cluster)
                receiver.answer { _, _ in .never }
                try await push(2, to: "w:1", Caller(url: second.url, token: caller.token))
                _ = try await receiver.call { $0.head == 2 }
                await first.process.end()
                receiver.answer { _, _ in .status(200) }
                _ = try await receiver.call { $0.head == 2 && $0.isTaken }
                #expect(await second.stop() == 0)
            }
        }

        @Test("Neither the secret nor the address is in any log, and a webhook without a secret stops the start")
        func secrets() async throws {
            try await WebhookReceiver.run { receiver in
                receiver.answer { _, count in .status(count < 3 ? 500 : 200) }
                let server = try await server(
                    ["push: {url: \"\(receiver.url)?key=hush\", secretVariable: HOOK_SECRET, from: start}"],
                    environment: ["HOOK_SECRET": Self.secret], arguments: ["--log-level", "trace"])
                let caller = try await caller(server)
                try await push(1, to: "w:1", caller)
                _ = try await server.errors { $0.components(separatedBy: "did not take the news").count > 2 }
                #expect(await server.stop() == 0)
                let text = server.process.standardError + server.process.standardOutput
                #expect(!text.contains(Self.secret) && !text.contains("hush"))
            }
            for (source, complaint) in [
                ("secretVariable: NOTHING", "NOTHING is not set"), ("secretFile: /nowhere/at/all", "cannot be read"),
                ("secretVariable: WEAK", "at least 32"),
            ] {
                let path = try write(["push: {url: \"https://127.0.0.1/\", \(source)}"])
                let result = try await ChildProcess(
                    ServeTests.command, ["serve", "--store", "sqlite:" + bench.path("x"), "--config", path],
                    environment: ["WEAK": "weak"]
                ).result()
                #expect(result.status == 1 && result.errors.contains(complaint), "\(result.errors)")
                #expect(!result.errors.contains("'weak'"))
            }
        }

        // MARK: A server with webhooks

        private func hook(_ name: String, _ receiver: WebhookReceiver, _ more: String...) -> String {
            let members = [
                "url: \"\(receiver.url)\"", "secretFile: \(bench.path("hook.key"))", "scopes: [\"w:*\"]", "from: start",
            ]
            return "\(name): {\((members + more).joined(separator: ", "))}"
        }

        private func write(_ hooks: [String]) throws -> String {
            let path = bench.path("tidemark.yaml")
            try ("webhooks:\n" + hooks.map { "  \($0)\n" }.joined()).write(
                toFile: path, atomically: true, encoding: .utf8)
            return path
        }

        private func server(
            _ hooks: [String], postgres cluster: PostgresCluster? = nil, environment: [String: String] = [:],
            arguments: [String] = []
        ) async throws -> ServerProcess {
            try "\(Self.secret)-of-tokens".write(toFile: bench.path("key"), atomically: true, encoding: .utf8)
            let store = cluster?.url() ?? "sqlite:" + bench.path("s")
            return try await ServerProcess.start(
                ["--listen", "127.0.0.1:0", "--secret-file", bench.path("key"), "--config", try write(hooks)]
                    + arguments,
                environment: environment.merging(["TIDEMARK_STORE": store]) { $1 })
        }

        private func caller(_ server: ServerProcess) async throws -> Caller {
            let token = try await bench.run(
                ["token", "--secret-file", bench.path("key"), "--sub", "ada", "--scope", "w:*=rw"]
            ).output.trimmingCharacters(in: .whitespacesAndNewlines)
            return Caller(url: server.url, token: token)
        }

        private func push(_ numbers: ClosedRange<Int>, to scope: String, _ caller: Caller) async throws {
            for number in numbers { try await push(number, to: scope, caller) }
        }

        private func push(_ number: Int, to scope: String, _ caller: Caller) async throws {
            let answer = try await caller.push(
                [upsert("t1", #""n":\#(number)"#)], scope: scope, lane: "lane-\(scope.suffix(1))-01", from: number,
                path: "/sync/push")
            try #require(answer.status == 200, "\(answer.text)")
        }
    }

    extension ServerProcess {
        /// What it says, once that is so.
        fileprivate func errors(until isSo: (String) -> Bool) async throws -> String {
            try await poll { isSo(process.standardError) }
            return process.standardError
        }
    }
#endif
