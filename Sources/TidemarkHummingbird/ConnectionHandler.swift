#if Server
    import NIOCore
    import NIOHTTPTypes

    /// Holds one connection to the limits that Hummingbird has none for, or whose clock begins again with every byte.
    final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
        typealias InboundIn = HTTPRequestPart
        typealias InboundOut = HTTPRequestPart
        typealias OutboundIn = HTTPResponsePart
        typealias OutboundOut = HTTPResponsePart

        private let limits: ServerLimits
        private let connections: OpenConnections
        private var isOpen = false
        /// Requests whose headers have come and whose answer is not taken yet.
        private var asked = 0
        private var bodyBytes = 0
        /// The end of the wait for headers, and of the wait for a body.
        private var deadline: Scheduled<Void>?

        init(_ limits: ServerLimits, among connections: OpenConnections) {
            self.limits = limits
            self.connections = connections
        }

        func handlerAdded(context: ChannelHandlerContext) {
            if context.channel.isActive { open(context) }
        }

        func channelActive(context: ChannelHandlerContext) {
            open(context)
            context.fireChannelActive()
        }

        func channelInactive(context: ChannelHandlerContext) {
            end(context)
            context.fireChannelInactive()
        }

        func handlerRemoved(context: ChannelHandlerContext) { end(context) }

        private func open(_ context: ChannelHandlerContext) {
            guard !isOpen else { return }
            isOpen = true
            connections.opened(context.channel)
            close(context, in: TimeAmount(limits.firstRequestTimeout))
        }

        private func end(_ context: ChannelHandlerContext) {
            deadline?.cancel()
            connections.closed(context.channel)
        }

        /// Unless something happens before.
        private func close(_ context: ChannelHandlerContext, in time: TimeAmount) {
            deadline?.cancel()
            let channel = context.channel
            deadline = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
        }

        // MARK: What comes

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head:
                bodyBytes = 0
                asked += 1
                connections.isBusy(context.channel)
                close(context, in: TimeAmount(limits.requestTimeout))
            case .body(let part):
                // A body that was refused is still read to its end, whoever sends it.
                bodyBytes += part.readableBytes
                if bodyBytes > limits.drainedBytes {
                    context.close(promise: nil)
                    return
                }
            case .end:
                deadline?.cancel()
                deadline = nil
            }
            context.fireChannelRead(data)
        }

        // MARK: What goes

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            switch unwrapOutboundIn(data) {
            case .head, .body: context.write(data, promise: promise)
            case .end:
                let taken = promise ?? context.eventLoop.makePromise()
                let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
                taken.futureResult.whenComplete { _ in
                    let (handler, context) = loopBound.value
                    handler.answered(context)
                }
                context.write(data, promise: taken)
            }
        }

        private func answered(_ context: ChannelHandlerContext) {
            guard context.channel.isActive else { return }
            asked = max(0, asked - 1)
            guard asked == 0 else { return }
            connections.isIdle(context.channel)
        }
    }
#endif
