#if Server
    import HummingbirdCore
    import Logging
    import NIOCore
    import NIOHTTP1
    import NIOHTTPTypes
    import NIOHTTPTypesHTTP1

    /// HTTP/1.1 whose work ends with the connection: what waits for a turn by then is not carried out, and its memory
    /// is free (I14). Hummingbird itself hears of a caller who has gone when it writes the answer.
    ///
    /// The handlers are those of Hummingbird's `HTTP1Channel`, with two more of our own, and with a bound on the bytes
    /// behind a request that asks for another protocol: NIO keeps them unread.
    struct LeavableChannel: HTTPChannelHandler {
        typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

        let responder: Responder
        let limits: ServerLimits
        let connections: OpenConnections

        func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
            channel.eventLoop.makeCompletedFuture {
                let encoder = HTTPResponseEncoder()
                let decoder = ByteToMessageHandler(
                    HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: headers),
                    maximumBufferSize: limits.headerBytes * 2)
                let codec = HTTP1ToHTTPServerCodec(secure: false)
                let state = HTTPConnectionStateHandler(idleTimeout: limits.idleTimeout, logger: logger)
                let upgrade = SocketUpgrade(limits, decoder: decoder, others: [encoder, codec, state])
                try channel.pipeline.syncOperations.addHandlers(
                    [encoder, decoder, codec, upgrade, ConnectionHandler(limits, among: connections), state])
                return try NIOAsyncChannel(
                    wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
            }
        }

        private var headers: NIOHTTPDecoderLimitConfiguration {
            var headers = NIOHTTPDecoderLimitConfiguration()
            headers.maxHeaderFieldSize = limits.headerFieldBytes
            headers.maxHeaderListSize = limits.headerBytes
            headers.maxHeaderFieldCount = limits.headers
            return headers
        }

        func handle(value: Value, logger: Logger) async {
            let work = Task { await handleHTTP(asyncChannel: value, logger: logger) }
            value.channel.closeFuture.whenComplete { _ in work.cancel() }
            await withTaskCancellationHandler {
                await work.value
            } onCancel: {
                work.cancel()
            }
        }
    }
#endif
