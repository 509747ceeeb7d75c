#if Server
    import HTTPTypes
    import Hummingbird
    import Logging
    import NIOCore
    import NIOEmbedded
    import Synchronization
    import Testing
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkTesting
    import TidemarkWire

    @testable import TidemarkCommand

    /// Callers choose paths and names, receivers of webhooks choose reasons, and an operator reads the log by lines.
    @Suite("Texts of others in the server's log")
    struct LoggedTextTests {
        private static let foreign = "a\nlevel=info\u{1b}[2J\u{9b}1m\u{202e}b"
        private static let spelled = #"a\u000alevel=info\u001b[2J\u009b1m\u202eb"#

        @Test("a path and an error begin no line of their own")
        func request() async throws {
            let log = KeptLog()
            let context = SyncRequestContext(
                source: ApplicationRequestContextSource(channel: EmbeddedChannel(), logger: log.logger))
            let head = HTTPRequest(
                method: .get, scheme: "http", authority: "localhost", path: "/records/\(Self.foreign)")
            let middleware = SyncMiddleware<SyncRequestContext>(for: SyncServer(store: MemoryStore()))
            let response = try await middleware.handle(
                Request(head: head, body: RequestBody(buffer: ByteBuffer())), context: context
            ) { _, _ in throw ForeignError(description: "no \(Self.foreign)") }
            #expect(response.status.code == 500)
            let line = try #require(log.lines.first)
            #expect(line["error"] == "no \(Self.spelled)" && line["method"] == "GET")
            #expect(line["path"]?.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x9b } == false)
        }

        @Test("a hook's reason begins no line of its own")
        func hook() throws {
            let log = KeptLog()
            Webhook.log(HookEvent(hook: "push", kind: .givenUp, reason: Self.foreign), to: log.logger)
            #expect(try #require(log.lines.first)["reason"] == Self.spelled)
        }
    }

    private struct ForeignError: Error, CustomStringConvertible { let description: String }

    /// A log that keeps what each line tells beside its message.
    private final class KeptLog: Sendable {
        private let kept = Mutex<[[String: String]]>([])

        var lines: [[String: String]] { kept.withLock { $0 } }

        var logger: Logger { Logger(label: "test") { _ in Handler(log: self) } }

        private struct Handler: LogHandler {
            let log: KeptLog
            var metadata: Logger.Metadata = [:]
            var logLevel = Logger.Level.trace

            subscript(metadataKey key: String) -> Logger.Metadata.Value? {
                get { metadata[key] }
                set { metadata[key] = newValue }
            }

            func log(event: LogEvent) {
                log.kept.withLock { $0.append((event.metadata ?? [:]).mapValues { "\($0)" }) }
            }
        }
    }
#endif
