#if Server
    public import Hummingbird
    public import HummingbirdCore
    public import Logging
    import NIOCore
    import NIOHTTPTypes
    import TidemarkWire

    /// What one listening socket grants to whoever connects. Hummingbird itself sets no such limit.
    ///
    /// ```swift
    /// let limits = ServerLimits()
    /// let app = Application(
    ///     router: router, server: limits.http1(), configuration: limits.configuration(address: .hostname()))
    /// ```
    public struct ServerLimits: Hashable, Sendable {
        /// A connection that begins no request, or does not finish sending its headers, is closed after this time; so
        /// is one whose answer is still not taken this long after it was written.
        public var idleTimeout = Duration.seconds(120)
        /// From a request's headers to the end of its body; a body that trickles in for longer closes the connection.
        public var requestTimeout = Duration.seconds(120)
        /// Connections at one time; more wait in the system's queue.
        public var connections = 1024
        /// Connections that may wait in the system's queue.
        public var backlog = 256
        /// Bytes of all headers of a request together.
        public var headerBytes = 32 << 10
        /// Bytes of one header, the token's among them.
        public var headerFieldBytes = 16 << 10
        /// Headers of one request.
        public var headers = 100
        /// Bytes of a request's body on the wire after which the connection is closed, whoever may still be reading.
        /// Below this a body that is too large gets its answer.
        public var drainedBytes = 32 << 20
        /// How long requests may still run once a shutdown was asked for.
        public var shutdownTimeout = Duration.seconds(20)

        /// The defaults.
        public init() {}
    }

    extension ServerLimits {
        /// HTTP/1.1 within these limits.
        public func http1() -> HTTPServerBuilder {
            let limits = self
            let decoder = HTTP1Channel.Configuration.DecoderConfiguration(
                maxHeaderFieldSize: headerFieldBytes, maxHeaderListSize: headerBytes, maxHeaderFieldCount: headers)
            let configuration = HTTP1Channel.Configuration(
                additionalChannelHandlers: [RequestDeadline(limits)], idleTimeout: TimeAmount(idleTimeout),
                httpDecoderConfiguration: decoder)
            return .http1(configuration: configuration)
        }

        /// An application's configuration within these limits.
        public func configuration(
            address: BindAddress, logger: Logger = Logger(label: "connections")
        ) -> ApplicationConfiguration {
            ApplicationConfiguration(
                address: address, serverName: "tidemark", backlog: backlog,
                availableConnectionsDelegate: MaximumAvailableConnections(connections, logger: logger))
        }
    }

    /// Closes a connection whose request does not come to its end in time, or not at all.
    ///
    /// Hummingbird's idle timeout starts again with every byte, and a body that was refused is still read to its end;
    /// this is what keeps either from going on for ever.
    private final class RequestDeadline: ChannelInboundHandler, RemovableChannelHandler {
        typealias InboundIn = HTTPRequestPart
        typealias InboundOut = HTTPRequestPart

        private let timeout: TimeAmount
        private let byteLimit: Int
        private var deadline: Scheduled<Void>?
        private var bytes = 0

        init(_ limits: ServerLimits) {
            timeout = TimeAmount(limits.requestTimeout)
            byteLimit = limits.drainedBytes
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head:
                bytes = 0
                deadline?.cancel()
                let channel = context.channel
                deadline = context.eventLoop.scheduleTask(in: timeout) { channel.close(promise: nil) }
            case .body(let part):
                bytes += part.readableBytes
                if bytes > byteLimit {
                    context.close(promise: nil)
                    return
                }
            case .end:
                deadline?.cancel()
                deadline = nil
            }
            context.fireChannelRead(data)
        }

        func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }
    }
#endif
