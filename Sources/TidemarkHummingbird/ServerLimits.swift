#if Server
    public import Hummingbird
    public import HummingbirdCore
    public import Logging

    /// The limits that one listening socket sets for its callers. Hummingbird itself sets none of them.
    ///
    /// ```swift
    /// let limits = ServerLimits()
    /// let app = Application(
    ///     router: router, server: limits.http1(), configuration: limits.configuration(address: .hostname()))
    /// ```
    public struct ServerLimits: Hashable, Sendable {
        /// A connection whose first request's headers have not come after this time is closed.
        public var firstRequestTimeout = Duration.seconds(10)
        /// A connection that was served and begins no other request, or does not finish sending its headers, is closed
        /// after this time; so is one whose answer is still not taken this long after it was written.
        public var idleTimeout = Duration.seconds(120)
        /// From a request's headers to the end of its body; a body that trickles in for longer closes the connection.
        public var requestTimeout = Duration.seconds(120)
        /// A connection whose reader takes nothing of an answer for this time is closed, at the latest after twice as
        /// long.
        public var writeTimeout = Duration.seconds(30)
        /// Connections at one time. Where one more comes, the one that has been idle for longest is closed. While none
        /// is idle a sixteenth more are let in, each for what it asks at once; the others wait in the system's queue.
        public var connections = 1024
        /// Connections that may wait in the system's queue; those beyond it are refused there.
        public var backlog = 256
        /// Bytes of answers that wait for their readers, of all connections together; one answer always may. Beyond
        /// it the connections whose readers have taken nothing for longest are closed.
        public var unsentBytes = 64 << 20
        /// Bytes of all headers of a request together.
        public var headerBytes = 32 << 10
        /// Bytes of one header, the token's among them.
        public var headerFieldBytes = 16 << 10
        /// Headers of one request.
        public var headers = 100
        /// Bytes of a request's body on the wire after which the connection is closed, whoever may still be reading.
        /// Below this a body that is too large gets its answer.
        public var drainedBytes = 32 << 20
        /// Bytes of a blob's body that have to come in a second, on average over `requestTimeout`; the connection of
        /// one that comes slower is closed. Neither `requestTimeout` nor `drainedBytes` bounds such a body before its
        /// answer.
        public var blobRate = 1024
        /// Bytes of a message that comes over a socket, in one frame or in many. A token has to fit.
        public var socketBytes = 32 << 10
        /// Frames that may come over a socket within a second, pings and pongs among them.
        public var socketFrames = 100
        /// Pings in a row that a socket may leave without a pong; the next one closes it.
        public var socketPings = 2
        /// How long requests may still run once a shutdown was asked for.
        public var shutdownTimeout = Duration.seconds(20)

        /// The defaults.
        public init() {}
    }

    extension ServerLimits {
        /// HTTP/1.1 within these limits, and the WebSockets that a route answers with. Requests that a connection has
        /// sent and that have not begun end with the connection.
        public func http1() -> HTTPServerBuilder {
            let limits = self
            let open = OpenConnections(limits)
            return HTTPServerBuilder { responder in
                LeavableChannel(responder: responder, limits: limits, connections: open)
            }
        }

        /// An application's configuration within these limits.
        public func configuration(
            address: BindAddress, logger: Logger = Logger(label: "connections")
        ) -> ApplicationConfiguration {
            ApplicationConfiguration(
                address: address, serverName: "tidemark", backlog: backlog,
                availableConnectionsDelegate: MaximumAvailableConnections(mostConnections, logger: logger))
        }

        /// Connections with those that are let in while none is idle.
        public var mostConnections: Int { connections + max(1, connections / 16) }
    }
#endif
