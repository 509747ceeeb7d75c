#if Server
    import HTTPTypes
    import NIOCore
    import NIOHTTPTypes
    import NIOWebSocket
    import TidemarkWire

    /// Carries an exchange that goes on for as long as a socket is open: each text that comes is a part of the
    /// request's body, each part of the answer's body a text that goes, and an empty part asks whether anybody is
    /// there. The answer's end closes the socket, with the code and the reason that its trailers name.
    ///
    /// What RFC 6455 and the limits do not allow ends here, before any route sees it.
    final class SocketFrames: ChannelDuplexHandler {
        typealias InboundIn = WebSocketFrame
        typealias InboundOut = HTTPRequestPart
        typealias OutboundIn = HTTPResponsePart
        typealias OutboundOut = WebSocketFrame

        /// How long the other side has to answer the closing.
        private static let lingering = TimeAmount.seconds(1)
        private static let rateWindow = TimeAmount.seconds(1)
        /// Bytes of a control frame, but for the code of a closing.
        private static let reasonBytes = 123

        private let limits: ServerLimits
        /// The fragments of a text that has not come to its end.
        private var text: ByteBuffer?
        private var isClosing = false
        /// Pings in a row that no pong has followed.
        private var unanswered = 0
        /// Frames of the present second.
        private var frames = 0
        private var second: NIODeadline?
        private var deadline: Scheduled<Void>?

        init(_ limits: ServerLimits) { self.limits = limits }

        func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

        // MARK: What comes

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let frame = unwrapInboundIn(data)
            guard !isClosing else {
                if frame.opcode == .connectionClose { context.close(promise: nil) }
                return
            }
            // A client masks each of its frames (RFC 6455, 5.1); no extension was agreed on.
            guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
                return close(context, .protocolError)
            }
            guard isWithinRate(context.eventLoop.now) else {
                return close(context, .policyViolation, ProblemCode.tooManyRequests.rawValue)
            }
            switch frame.opcode {
            case .text where text == nil: take(frame, behind: ByteBuffer(), context)
            case .continuation:
                guard let text else { return close(context, .protocolError) }
                take(frame, behind: text, context)
            case .binary: close(context, .unacceptableData)
            case .ping: answer(frame, context)
            case .pong: unanswered = 0
            case .connectionClose: closed(frame, context)
            default: close(context, .protocolError)
            }
        }

        private func isWithinRate(_ now: NIODeadline) -> Bool {
            if let second, now < second + Self.rateWindow {
                frames += 1
            } else {
                (second, frames) = (now, 1)
            }
            return frames <= limits.socketFrames
        }

        private func take(_ frame: WebSocketFrame, behind text: ByteBuffer, _ context: ChannelHandlerContext) {
            guard text.readableBytes + frame.length <= limits.socketBytes else {
                return close(context, .messageTooLarge, ProblemCode.requestTooLarge.rawValue)
            }
            var (whole, part) = (text, frame.unmaskedData)
            self.text = nil
            whole.writeBuffer(&part)
            guard frame.fin else {
                self.text = whole
                return
            }
            guard whole.withUnsafeReadableBytes({ isValidUTF8($0) }) else {
                return close(context, .dataInconsistentWithMessage)
            }
            context.fireChannelRead(wrapInboundOut(.body(whole)))
        }

        /// A reader that takes nothing gets no more answers than fit: the last ping is the one that counts.
        private func answer(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
            guard context.channel.isWritable else { return }
            let pong = WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData)
            context.writeAndFlush(wrapOutboundOut(pong), promise: nil)
        }

        /// The other side closes: it hears its own code, and the connection ends.
        private func closed(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
            var data = frame.unmaskedData
            let code = data.readInteger(as: UInt16.self)
            let isSound = data.withUnsafeReadableBytes { isValidUTF8($0) }
            guard code.map(Self.mayBeSent) ?? (data.readableBytes == 0), isSound else {
                return close(context, .protocolError)
            }
            let loopBound = NIOLoopBound(context, eventLoop: context.eventLoop)
            let promise = context.eventLoop.makePromise(of: Void.self)
            promise.futureResult.whenComplete { _ in loopBound.value.close(promise: nil) }
            close(context, code.map { .unknown($0) } ?? .normalClosure, promise: promise)
        }

        /// Whether a code may stand in a frame (RFC 6455, 7.4).
        private static func mayBeSent(_ code: UInt16) -> Bool {
            switch code {
            case 1000...1003, 1007...1014, 3000...4999: true
            default: false
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            switch error {
            case NIOWebSocketError.invalidFrameLength:
                close(context, .messageTooLarge, ProblemCode.requestTooLarge.rawValue)
            case is NIOWebSocketError: close(context, .protocolError)
            // Bytes behind a frame that was refused.
            case is ByteToMessageDecoderError where isClosing: break
            default: context.fireErrorCaught(error)
            }
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            // Nobody can answer a ping any more.
            if let event = event as? ChannelEvent, event == .inputClosed { context.close(promise: nil) }
            context.fireUserInboundEventTriggered(event)
        }

        // MARK: What goes

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            switch unwrapOutboundIn(data) {
            case .head: promise?.succeed()
            case .body(let part):
                guard !isClosing else {
                    promise?.succeed()
                    return
                }
                if part.readableBytes == 0 { return ping(context, promise) }
                context.write(wrapOutboundOut(WebSocketFrame(fin: true, opcode: .text, data: part)), promise: promise)
            case .end(let trailers):
                let end = SocketEnd(trailers)
                close(context, .unknown(end.code), end.reason, promise: promise)
            }
        }

        private func ping(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
            guard unanswered < limits.socketPings else {
                promise?.succeed()
                return close(context, .policyViolation, "no pong")
            }
            unanswered += 1
            let frame = WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer())
            context.write(wrapOutboundOut(frame), promise: promise)
        }

        /// Closes, once; the route's request comes to its end, and the connection to its own soon after.
        private func close(
            _ context: ChannelHandlerContext, _ code: WebSocketErrorCode, _ reason: String = "",
            promise: EventLoopPromise<Void>? = nil
        ) {
            guard !isClosing else {
                promise?.succeed()
                return
            }
            (isClosing, text) = (true, nil)
            var data = context.channel.allocator.buffer(capacity: 2 + reason.utf8.count)
            data.write(webSocketErrorCode: code)
            data.writeBytes(reason.utf8.prefix(Self.reasonBytes))
            context.writeAndFlush(
                wrapOutboundOut(WebSocketFrame(fin: true, opcode: .connectionClose, data: data)), promise: promise)
            context.fireChannelRead(wrapInboundOut(.end(nil)))
            context.fireChannelReadComplete()
            let channel = context.channel
            deadline = context.eventLoop.scheduleTask(in: Self.lingering) { channel.close(promise: nil) }
        }
    }

    /// Why a server closes a socket.
    struct SocketEnd: Error, Hashable {
        let code: UInt16
        let reason: String

        init(_ code: UInt16, _ reason: String) { (self.code, self.reason) = (code, reason) }

        /// The server stops.
        static var stopping: SocketEnd { SocketEnd(1001, ProblemCode.unavailable.rawValue) }
        /// The reader has ended, or wants nothing more.
        static var done: SocketEnd { SocketEnd(1000, "") }

        /// The end of what a problem does not allow.
        init(_ problem: ProblemCode) {
            switch problem {
            // "Try again later" (IANA).
            case .unavailable, .internalError: self.init(1013, problem.rawValue)
            default: self.init(1008, problem.rawValue)
            }
        }

        init(_ trailers: HTTPFields?) {
            code = trailers?[.socketCode].flatMap { UInt16($0) } ?? Self.done.code
            reason = trailers?[.socketReason] ?? ""
        }

        var trailers: HTTPFields { [.socketCode: String(code), .socketReason: reason] }
    }

    extension HTTPField.Name {
        // They never leave the server. A name that does not parse would be this file's mistake, as for the others.
        fileprivate static let socketCode = Self("Socket-Code") ?? .accept
        fileprivate static let socketReason = Self("Socket-Reason") ?? .acceptEncoding
    }
#endif
