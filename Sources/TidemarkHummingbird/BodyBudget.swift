#if Server
    package import TidemarkServer
    import TidemarkWire

    /// Bytes of bodies that are on their way, of all requests and of each caller (I14). While others wait for room,
    /// the body that has been on its way for longest is the first to go.
    package final class BodyBudget: Sendable {
        /// The bodies of one caller may take up to the limit divided by this.
        private static let shares = 2
        /// The first bytes of each count for nobody: connections bound their sum, and a body that is no larger is never
        /// held up by others.
        fileprivate static let uncounted = 64 << 10
        /// No body has to go for another within so long of its beginning.
        private static let grace = Duration.seconds(1)

        fileprivate struct State {
            var free: Int
            var held: [String: Int] = [:]
            var bodies: [UInt64: Body] = [:]
            var last: UInt64 = 0
        }

        fileprivate struct Body {
            var caller: String
            var begun: ContinuousClock.Instant
            var bytes = 0
            /// Ends whoever reads it; `nil` once it is here.
            var end: (@Sendable () -> Void)?
        }

        private let limit: Int
        private let share: Int
        private let state: Guarded<State>

        /// - Parameters:
        ///   - limit: bytes of all bodies.
        ///   - largest: bytes of one, which fits by itself in any case.
        init(limit: Int, largest: Int) {
            self.limit = max(limit, largest)
            share = max(limit / Self.shares, largest)
            state = Guarded(State(free: self.limit))
        }

        /// The budget of a server's bodies.
        package convenience init(for server: SyncServer) {
            self.init(limit: server.limits.bodiesBytes, largest: server.limits.bodyBytes)
        }

        /// Collects a body within the budget and passes it on; its bytes count until `use` has ended.
        ///
        /// - Parameter announced: its bytes, where its headers say so. A small one counts for nobody.
        func collect<Result: Sendable>(
            of caller: String, announced: Int?,
            _ read: @escaping @Sendable (_ hold: @Sendable (Int) throws(Problem) -> Void) async throws -> [UInt8],
            use: ([UInt8]) async throws -> Result
        ) async throws -> Result {
            if let announced, announced <= Self.uncounted { return try await use(try await read { _ in }) }
            let reading = Guarded<Task<[UInt8], any Error>?>(nil)
            let number = state.withLock { state in
                state.last += 1
                state.bodies[state.last] = Body(caller: caller, begun: .now) { reading.withLock { $0?.cancel() } }
                return state.last
            }
            defer { release(number) }
            let task = Task { try await read { bytes throws(Problem) in try self.hold(bytes, by: number) } }
            reading.withLock { $0 = task }
            let body: [UInt8]
            do {
                body = try await withTaskCancellationHandler {
                    try await task.value
                } onCancel: {
                    task.cancel()
                }
            } catch {
                throw isHeld(number) ? error : Self.tooSlow
            }
            guard isHeld(number) else { throw Self.tooSlow }
            // It is here: nobody has to wait for the rest of it.
            state.withLock { $0.bodies[number]?.end = nil }
            return try await use(body)
        }

        private static var tooSlow: Problem {
            var problem = Problem(.unavailable, "The body came slowly, and others were waiting for its room.")
            problem.retryAfter = 1
            return problem
        }

        private func isHeld(_ number: UInt64) -> Bool { state.withLock { $0.bodies[number] != nil } }

        private func release(_ number: UInt64) { state.withLock { $0.release(number) } }

        /// Counts bytes that have come.
        private func hold(_ bytes: Int, by number: UInt64) throws(Problem) {
            let outcome: Result<(@Sendable () -> Void)?, Problem> = state.withLock { state in
                guard let body = state.bodies[number] else { return .failure(Self.tooSlow) }
                let counted = max(0, body.bytes + bytes - Self.uncounted) - max(0, body.bytes - Self.uncounted)
                let share = body.caller.isEmpty ? limit : share
                guard state.held[body.caller, default: 0] + counted <= share else { return .failure(Self.tooMany) }
                var end: (@Sendable () -> Void)?
                if counted > state.free {
                    guard let slow = state.slowest(but: number, now: .now - Self.grace) else {
                        return .failure(Self.crowded)
                    }
                    end = state.bodies[slow]?.end
                    state.release(slow)
                    guard counted <= state.free else { return .failure(Self.crowded) }
                }
                state.free -= counted
                state.held[body.caller, default: 0] += counted
                state.bodies[number]?.bytes += bytes
                return .success(end)
            }
            try outcome.get()?()
        }

        private static var crowded: Problem {
            var problem = Problem(.unavailable, "Too many bytes of other requests are on their way.")
            problem.retryAfter = 1
            return problem
        }

        private static var tooMany: Problem {
            var problem = Problem(.tooManyRequests, "Too many bytes of this caller's requests are on their way.")
            problem.retryAfter = 1
            return problem
        }
    }

    extension BodyBudget.State {
        /// The one that is not here yet and has been on its way for longest, if it began before a moment.
        fileprivate func slowest(but own: UInt64, now moment: ContinuousClock.Instant) -> UInt64? {
            bodies.filter { $0.key != own && $0.value.end != nil && $0.value.begun < moment }
                .min { $0.value.begun < $1.value.begun }?.key
        }

        fileprivate mutating func release(_ number: UInt64) {
            guard let body = bodies.removeValue(forKey: number) else { return }
            let counted = max(0, body.bytes - BodyBudget.uncounted)
            free += counted
            let rest = held[body.caller, default: 0] - counted
            held[body.caller] = rest > 0 ? rest : nil
        }
    }
#endif
