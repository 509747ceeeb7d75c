#if Server
    import HTTPTypes
    import NIOCore
    import NIOHTTP1
    import NIOHTTPTypes
    import NIOWebSocket

    /// Lets a route answer with a WebSocket (RFC 6455), in the form that HTTP/2 has for it (RFC 8441): the request is
    /// named by `:protocol`, which nobody can write into HTTP/1.1, and its body goes on for as long as the socket is
    /// open. Whatever the route answers but 101 is an answer like any other.
    ///
    /// NIO's own upgrade handler decides before the router has seen the request; here the router's middlewares, its
    /// refusals and its log are those of any request.
    final class SocketUpgrade: ChannelDuplexHandler, RemovableChannelHandler {
        typealias InboundIn = HTTPRequestPart
        typealias InboundOut = HTTPRequestPart
        typealias OutboundIn = HTTPResponsePart
        typealias OutboundOut = HTTPResponsePart

        /// What a route finds in the request, and what the caller has asked for.
        static let name = "websocket"
        static let version = "13"
        /// The end of the path of a route that may answer with a socket: no other request's body is kept open.
        private static let path = "/socket"
        /// A key is sixteen bytes in base64.
        private static let keyBytes = 24

        private let limits: ServerLimits
        private let decoder: ByteToMessageHandler<HTTPRequestDecoder>
        /// The other handlers that know HTTP alone.
        private let others: [any RemovableChannelHandler]
        /// Requests that are not answered yet.
        private var asked = 0
        /// The last request asks for another protocol: nothing behind it is read as HTTP.
        private var isLast = false
        /// The last request asks for a socket: how its answer shows that it was understood, and whether the request has
        /// come whole.
        private var accepted: String?
        private var isWhole = false

        init(
            _ limits: ServerLimits, decoder: ByteToMessageHandler<HTTPRequestDecoder>,
            others: [any RemovableChannelHandler]
        ) {
            self.limits = limits
            self.decoder = decoder
            self.others = others
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(var head):
                asked += 1
                isLast = Self.isLast(head)
                if isLast, let key = Self.key(of: head) {
                    accept(key, context)
                    head.extendedConnectProtocol = Self.name
                }
                context.fireChannelRead(wrapInboundOut(.head(head)))
            case .body: context.fireChannelRead(data)
            case .end:
                if accepted != nil { isWhole = true } else { context.fireChannelRead(data) }
            }
        }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            switch unwrapOutboundIn(data) {
            case .head(var head):
                // Answers come in the order of their requests.
                guard isLast, asked == 1, head.status.kind != .informational || head.status == .switchingProtocols
                else { break }
                if head.status == .switchingProtocols { return open(head, context, promise) }
                endRequest(context)
                head.headerFields[.connection] = "close"
                return context.write(wrapOutboundOut(.head(head)), promise: promise)
            case .body: break
            case .end:
                asked -= 1
                guard isLast, asked == 0 else { break }
                // Bytes behind the request are of the protocol that it did not get.
                let written = promise ?? context.eventLoop.makePromise()
                let loopBound = NIOLoopBound(context, eventLoop: context.eventLoop)
                written.futureResult.whenComplete { _ in loopBound.value.close(promise: nil) }
                return context.writeAndFlush(data, promise: written)
            }
            context.write(data, promise: promise)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            guard isLast, error is ByteToMessageDecoderError.PayloadTooLargeError else {
                return context.fireErrorCaught(error)
            }
            // A caller that goes on in another protocol than it is answered in does not read the answer.
            context.close(promise: nil)
        }

        /// The request is like any other, and so is its end.
        private func endRequest(_ context: ChannelHandlerContext) {
            accepted = nil
            guard isWhole else { return }
            isWhole = false
            context.fireChannelRead(wrapInboundOut(.end(nil)))
            context.fireChannelReadComplete()
        }

        /// Answers 101, and puts the handlers of frames into the place of those of HTTP.
        private func open(
            _ head: HTTPResponse, _ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?
        ) {
            guard let accepted, isWhole else {
                promise?.fail(ChannelError.inappropriateOperationForState)
                return context.close(promise: nil)
            }
            var head = head
            head.headerFields[.secWebSocketAccept] = accepted
            (head.headerFields[.connection], head.headerFields[.upgrade]) = ("Upgrade", Self.name)
            context.writeAndFlush(wrapOutboundOut(.head(head)), promise: promise)
            let pipeline = context.pipeline.syncOperations
            do {
                let frames = ByteToMessageHandler(
                    WebSocketFrameDecoder(maxFrameSize: min(limits.socketBytes, Int(UInt32.max))))
                try pipeline.addHandlers(
                    [WebSocketFrameEncoder(), frames, SocketFrames(limits)], position: .before(self))
            } catch {
                return context.close(promise: nil)
            }
            // The decoder goes last: what it has not read goes on to the one of frames.
            for handler in others { pipeline.removeHandler(handler, promise: nil) }
            let channel = context.channel
            pipeline.removeHandler(decoder).whenComplete { _ in channel.pipeline.fireChannelReadComplete() }
            pipeline.removeHandler(self, promise: nil)
        }

        /// Whether NIO reads nothing behind the request: it asks for another protocol.
        private static func isLast(_ head: HTTPRequest) -> Bool {
            if head.method == .connect { return true }
            return names("upgrade", in: head.headerFields[.connection])
                && head.headerFields[.upgrade]?.isEmpty == false
        }

        /// The key of a request for a socket, where that is all that it is.
        private static func key(of head: HTTPRequest) -> String? {
            let fields = head.headerFields
            guard head.method == .get, head.path?.prefix(while: { $0 != "?" }).hasSuffix(path) == true,
                names(name, in: fields[.upgrade]), fields[.secWebSocketVersion] == version,
                fields[.contentLength] ?? "0" == "0", fields[.transferEncoding] == nil,
                let key = fields[.secWebSocketKey], key.utf8.count == keyBytes
            else { return nil }
            return key
        }

        /// Whether a list of words has one.
        private static func names(_ word: String, in list: String?) -> Bool {
            // As NIO's parser reads it: only blanks around a word are none of it.
            let isBlank = { (character: Character) in character == " " || character == "\t" }
            return list?.split(separator: ",").contains { item in
                var text = item.drop(while: isBlank)
                while let last = text.last, isBlank(last) { text.removeLast() }
                return text.lowercased() == word
            } ?? false
        }

        private func accept(_ key: String, _ context: ChannelHandlerContext) {
            let headers: HTTPHeaders = ["Sec-WebSocket-Key": key, "Sec-WebSocket-Version": Self.version]
            let upgrader = NIOWebSocketServerUpgrader(
                shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
                upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededVoidFuture() })
            accepted = ""
            let request = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/", headers: headers)
            let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
            let response = upgrader.buildUpgradeResponse(
                channel: context.channel, upgradeRequest: request, initialResponseHeaders: [:])
            response.whenSuccess { loopBound.value.accepted = $0.first(name: "Sec-WebSocket-Accept") }
        }
    }
#endif
