#if Server
    import NIOCore
    import NIOEmbedded
    import Testing

    @testable import TidemarkHummingbird

    /// Who goes where there are too many, on a clock that moves by hand.
    @Suite struct OpenConnectionsTests {
        private let loop = EmbeddedEventLoop()

        private func limits() -> ServerLimits {
            var limits = ServerLimits()
            (limits.connections, limits.unsentBytes) = (2, 100)
            return limits
        }

        /// Each a second after the one before.
        private func open(_ count: Int, among connections: OpenConnections) throws -> [EmbeddedChannel] {
            try (0..<count).map { _ in
                loop.advanceTime(by: .seconds(1))
                let channel = EmbeddedChannel(loop: loop)
                channel.connect(to: try SocketAddress(unixDomainSocketPath: "/peer"), promise: nil)
                connections.opened(channel)
                return channel
            }
        }

        private func step(_ note: (any Channel) -> Void, _ channel: EmbeddedChannel) {
            loop.advanceTime(by: .seconds(1))
            note(channel)
        }

        @Test func theOneThatIsIdleForLongestGoes() throws {
            let connections = OpenConnections(limits())
            var channels = try open(2, among: connections)
            step(connections.isBusy, channels[0])
            step(connections.isIdle, channels[0])
            #expect(channels.map(\.isActive) == [true, true])
            // The older one was served later.
            channels += try open(1, among: connections)
            #expect(channels.map(\.isActive) == [true, false, true])
            channels += try open(1, among: connections)
            #expect(channels.map(\.isActive) == [false, false, true, true])
        }

        @Test func oneThatIsBusyStays() throws {
            let connections = OpenConnections(limits())
            var channels = try open(2, among: connections)
            step(connections.isBusy, channels[0])
            channels += try open(2, among: connections)
            #expect(channels.map(\.isActive) == [true, false, false, true])
        }

        @Test func beyondTheLimitTheNextThatBecomesIdleGoes() throws {
            let connections = OpenConnections(limits())
            var channels = try open(2, among: connections)
            for channel in channels { step(connections.isBusy, channel) }
            channels += try open(1, among: connections)
            #expect(channels.map(\.isActive) == [true, true, true])
            step(connections.isBusy, channels[2])
            step(connections.isIdle, channels[1])
            #expect(channels.map(\.isActive) == [true, false, true])
            step(connections.isIdle, channels[0])
            step(connections.isIdle, channels[2])
            #expect(channels.map(\.isActive) == [true, false, true])
        }

        @Test func oneThatEndedMakesRoom() throws {
            let connections = OpenConnections(limits())
            var channels = try open(2, among: connections)
            step(connections.closed, channels[1])
            channels += try open(1, among: connections)
            #expect(channels.map(\.isActive) == [true, true, true])
        }

        /// Of those whose readers leave too much, and never the only one.
        @Test func theReaderThatTookNothingForLongestGoes() throws {
            let connections = OpenConnections(limits())
            let channels = try open(2, among: connections)
            step({ connections.note(unsent: 60, of: $0, tookSome: false) }, channels[0])
            step({ connections.note(unsent: 30, of: $0, tookSome: false) }, channels[1])
            step({ connections.note(unsent: 50, of: $0, tookSome: true) }, channels[0])
            #expect(channels.map(\.isActive) == [true, true])
            step({ connections.note(unsent: 70, of: $0, tookSome: false) }, channels[0])
            #expect(channels.map(\.isActive) == [true, true])
            step({ connections.note(unsent: 80, of: $0, tookSome: false) }, channels[0])
            #expect(channels.map(\.isActive) == [true, false])
            step({ connections.note(unsent: 500, of: $0, tookSome: false) }, channels[0])
            #expect(channels.map(\.isActive) == [true, false])
        }
    }
#endif
