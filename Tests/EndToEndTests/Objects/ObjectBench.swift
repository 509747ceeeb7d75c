#if Server
    import Foundation
    import TidemarkObjects
    import TidemarkServer
    import TidemarkWire

    /// A device with an object store, and another one that writes, over real HTTP.
    struct ObjectBench: Sendable {
        enum Place: String, CaseIterable, Sendable { case memory, file }

        /// One way to set a store up.
        struct Setup: Sendable, CustomStringConvertible {
            var delta: DeltaSyncStrategy
            var kept: Place

            static let all = DeltaSyncStrategy.allCases.flatMap { delta in
                Place.allCases.map { Setup(delta: delta, kept: $0) }
            }
            static let deltas = all.filter { $0.delta != .none }
            var description: String { "\(delta) in \(kept)" }
        }

        let server: DialectServer
        /// The other device.
        let other: PlainCaller
        let transport: WatchedTransport
        private let folder: TemporaryFolder

        init(_ server: DialectServer) async throws {
            self.server = server
            other = try await server.caller("bob")
            let token = try await server.caller("ada").caller.token ?? ""
            guard let url = URL(string: server.live.url) else { throw URLError(.badURL) }
            transport = WatchedTransport(base: HTTPTransport(url) { token })
            folder = try TemporaryFolder()
        }

        /// Opens the device's store. One that is kept in a file finds there what the one before has left.
        func store(_ setup: Setup, limits: ObjectLimits = ObjectLimits()) throws -> ObjectStore {
            let storage = setup.kept == .memory ? .inMemory : ObjectStorage.persistent(path: folder.path("objects"))
            let store = try ObjectStore(storage: storage, limits: limits, transport: transport)
            store.deltaSyncStrategy = setup.delta
            return store
        }

        /// A store that holds so many conferences.
        func filled(_ setup: Setup, _ count: Int) async throws -> ObjectStore {
            let store = try store(setup)
            try await add(0..<count)
            _ = try await store.fetch("conference")
            return store
        }

        /// The store once more after a restart, where there is something to find again.
        func restarted(
            _ store: ObjectStore, _ setup: Setup, limits: ObjectLimits = ObjectLimits()
        ) throws -> ObjectStore { setup.kept == .memory ? store : try self.store(setup, limits: limits) }

        /// The other device makes conferences.
        func add(_ numbers: Range<Int>) async throws {
            for number in numbers {
                _ = try await other.put("/rest/conference/conf\(number)", #"{"name":"conference \#(number)"}"#)
            }
        }

        /// Many at once.
        func commit(_ numbers: Range<Int>, of name: String) async throws {
            try await server.server.commit(to: "w") { changes in
                for number in numbers { changes.upsert(name, id: .init("o\(number)") ?? "x", ["n": 1]) }
            }
        }

        func delete(_ number: Int) async throws { _ = try await other.delete("/rest/conference/conf\(number)") }

        static func ids(_ numbers: Range<Int>) -> [String] { numbers.map { "conf\($0)" } }
    }

    /// Records each request of a store with its answer, and lets a test cut the wire or change an answer.
    final class WatchedTransport: Transport {
        struct Exchange: Sendable {
            var request: TransportRequest
            var response: TransportResponse

            var delta: String? { request.headers[DialectHeader.delta] }
            var deleted: String? { response.header(DialectHeader.deltaDeleted) }
            var body: String { String(decoding: response.body, as: UTF8.self) }
            /// Bytes of the header that says what the store holds.
            var up: Int { delta.map { Self.line(DialectHeader.delta, $0) } ?? 0 }
            /// Bytes of the body, before compression, and of the header that says what is gone.
            var down: Int { response.body.count + (deleted.map { Self.line(DialectHeader.deltaDeleted, $0) } ?? 0) }

            private static func line(_ name: String, _ value: String) -> Int { name.utf8.count + value.utf8.count + 4 }
        }

        typealias Trouble = @Sendable (TransportRequest, TransportResponse) async throws -> TransportResponse

        private let base: HTTPTransport
        private let log = Guarded<[Exchange]>([])
        private let trouble = Guarded<Trouble?>(nil)

        init(base: HTTPTransport) { self.base = base }

        func send(_ request: TransportRequest) async throws -> TransportResponse {
            var response = try await base.send(request)
            if let trouble = trouble.withLock({ $0 }) { response = try await trouble(request, response) }
            log.withLock { [response] in $0.append(Exchange(request: request, response: response)) }
            return response
        }

        /// All answers pass through there from now on; `nil`: they pass as they are.
        func meet(_ trouble: Trouble?) { self.trouble.withLock { $0 = trouble } }

        /// No answer comes back from now on.
        func cut() { cut(after: 0) }

        /// So many answers come, and then none.
        func cut(after answers: Int) {
            let left = Guarded(answers)
            meet { _, response in
                let isThere = left.withLock { left in
                    left -= 1
                    return left >= 0
                }
                guard isThere else { throw URLError(.networkConnectionLost) }
                return response
            }
        }

        /// The exchanges since this was last called.
        func taken() -> [Exchange] {
            log.withLock { log in
                defer { log = [] }
                return log
            }
        }
    }

    extension [StoredObject] {
        var ids: [String] { map(\.id.text) }
    }
#endif
