#if Server
    import AsyncHTTPClient
    import Foundation
    import Logging
    import NIOCore
    import NIOHTTP1
    import TidemarkCore
    import TidemarkServer
    import TidemarkWire

    /// Tells an address of commits, by signed requests. The address comes from the operator's file alone; a redirection
    /// is not followed, and of an answer only the status counts.
    struct Webhook: Sendable {
        /// Bytes of an answer that are read, so that its connection can be used again.
        private static let answerBytes = 16 << 10
        /// For how long they are read.
        private static let answerTime = Duration.seconds(1)

        private static let client: HTTPClient = {
            var configuration = HTTPClient.Configuration(
                redirectConfiguration: .disallow, timeout: .init(connect: .seconds(5)), decompression: .disabled)
            configuration.connectionPool.retryConnectionEstablishment = false
            // A hook whose calls hang takes no connection from another one of its host.
            configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit =
                HookMachine.Settings().callsAtOnce * WebhookReader.limit
            return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        }()

        private let declaration: WebhookDeclaration
        private let secret: [UInt8]

        /// - Throws: ``Failure`` where there is no secret, or one that can be guessed.
        init(
            _ declaration: WebhookDeclaration, environment: [String: String] = ProcessInfo.processInfo.environment
        ) throws {
            self.declaration = declaration
            switch declaration.secret {
            case .file(let path): secret = try Secret.read(path)
            case .variable(let name):
                guard let text = environment[name] else {
                    throw Failure(
                        "the webhook `\(declaration.name)` has no secret: \(name) is not set",
                        hint: "set it to at least \(Secret.minimumBytes) random bytes")
                }
                secret = try Secret.check(Array(text.utf8), from: name)
            }
        }

        var hook: CommitHook {
            var hook = CommitHook(declaration.name, scopes: declaration.scopes, start: declaration.start) { notice in
                await self.call(notice)
            }
            hook.retries = declaration.retries
            // The request ends by itself; this is for what would keep it from that.
            hook.timeout = declaration.timeout + .seconds(10)
            return hook
        }

        static func body(_ notice: CommitNotice) -> String {
            // A scope's name and an epoch need no escapes.
            #"{"scope":"\#(notice.scope)","head":\#(notice.head),"epoch":"\#(notice.epoch)","#
                + #""changes":\#(notice.changes),"time":\#(notice.time.milliseconds)}"#
        }

        /// The mark of a body as it was sent at a moment, in seconds since 1970.
        static func signature(of body: String, at seconds: Int64, secret: [UInt8]) -> String {
            let mark = SHA256.authenticate(Array("\(seconds).\(body)".utf8), key: secret)
            let digits = mark.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
            return "t=\(seconds),v1=\(digits)"
        }

        private func request(_ notice: CommitNotice) -> HTTPClientRequest {
            let body = Self.body(notice)
            var request = HTTPClientRequest(url: declaration.url.absoluteString)
            request.method = .POST
            request.headers.add(name: "Content-Type", value: "application/json")
            request.headers.add(name: "User-Agent", value: "tidemark")
            request.headers.add(name: "Tidemark-Delivery", value: "\(notice.scope)@\(notice.head)")
            let seconds = Int64(Date().timeIntervalSince1970)
            request.headers.add(
                name: "Tidemark-Signature", value: Self.signature(of: body, at: seconds, secret: secret))
            request.body = .bytes(ByteBuffer(string: body))
            return request
        }

        private func call(_ notice: CommitNotice) async -> (outcome: HookMachine.Outcome, reason: String) {
            let answer = await Self.within(declaration.timeout) { () -> Result<HTTPClientResponse, any Error> in
                do {
                    return .success(
                        try await Self.client.execute(
                            request(notice), timeout: .milliseconds(declaration.timeout.milliseconds)))
                } catch { return .failure(error) }
            }
            switch answer {
            case nil: return (.failed(), "no answer in time")
            case .failure(let error): return (.failed(), Self.reason(error))
            case .success(let answer):
                await Self.readRest(of: answer)
                let now = Date().milliseconds
                let asked = answer.headers.first(name: "Retry-After").flatMap {
                    RetryAfter.milliseconds($0, now: now)
                }
                let status = Int(answer.status.code)
                return (HookMachine.Outcome(status: status, asked: asked), "status \(status)")
            }
        }

        /// Errors of a connection say where it should have gone, and no more; others are told by their kind.
        private static func reason(_ error: any Error) -> String {
            if let error = error as? HTTPClientError {
                return error == .deadlineExceeded ? "no answer in time" : error.shortDescription
            }
            return "no connection (\(type(of: error)))"
        }

        private static func readRest(of answer: HTTPClientResponse) async {
            _ = await within(answerTime) { try? await answer.body.collect(upTo: answerBytes) }
        }

        /// Returns the work's result; `nil` where it takes too long.
        private static func within<Result: Sendable>(
            _ time: Duration, _ work: @escaping @Sendable () async -> Result
        ) async -> Result? {
            await withTaskGroup(of: Result?.self) { group in
                group.addTask { await work() }
                group.addTask {
                    try? await Task.sleep(for: time)
                    return nil
                }
                defer { group.cancelAll() }
                return await group.next() ?? nil
            }
        }

        static func log(_ event: HookEvent, to logger: Logger) {
            var metadata: Logger.Metadata = ["webhook": "\(event.hook)", "reason": "\(event.reason.printable)"]
            if let notice = event.notice {
                metadata.merge(["scope": "\(notice.scope)", "head": "\(notice.head)"]) { $1 }
            }
            switch event.kind {
            case .told: logger.debug("A webhook took the news.", metadata: metadata)
            case .failed(let wait):
                logger.warning(
                    "A webhook did not take the news; it is sent again.",
                    metadata: metadata.merging(["afterMilliseconds": "\(wait)"]) { $1 })
            case .givenUp: logger.error("A webhook refuses the news; it is sent no more.", metadata: metadata)
            case .stopped:
                logger.error(
                    "A webhook wants no more calls; it gets none until the server starts again.", metadata: metadata)
            case .unavailable:
                logger.error(
                    "The store fails; a webhook may miss news until it is back.",
                    metadata: metadata.merging(["forMilliseconds": "\(event.lag.milliseconds)"]) { $1 })
            }
        }
    }
#endif
