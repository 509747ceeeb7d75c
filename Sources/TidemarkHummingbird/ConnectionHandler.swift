#if Server
    import HTTPTypes
    import NIOCore
    import NIOHTTP1
    import NIOHTTPTypes
    import TidemarkWire

    /// Holds one connection to the limits that Hummingbird has none for, or whose clock begins again with every byte.
    final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
        typealias InboundIn = HTTPRequestPart
        typealias InboundOut = HTTPRequestPart
        typealias OutboundIn = HTTPResponsePart
        typealias OutboundOut = HTTPResponsePart

        /// How long a caller may go on reading why it was not understood.
        private static let lingering = TimeAmount.seconds(1)
        /// How often a caller who has stopped to speak is looked for while an answer is due to him.
        private static let lookInterval = TimeAmount.milliseconds(250)

        private let limits: ServerLimits
        private let connections: OpenConnections
        private var isOpen = false
        /// Requests whose headers have come and whose answer is not taken yet.
        private var asked = 0
        private var bodyBytes = 0
        /// Bytes of bodies, of all answers and of those that are taken to their end: an answer is held whole till then.
        private var writtenBytes = 0
        private var answeredBytes = 0
        /// The answer is a stream without end: what was taken of it is held no longer.
        private var isStream = false
        /// The answer is a blob's bytes, which are read as they are taken: no more of it is held than is not taken.
        private var isPieced = false
        /// The answer and its request are the messages of a socket.
        private var isSocket = false
        /// The request is a blob's body that is not answered: it may be large, and take its time, as long as it comes.
        private var isUpload = false
        private var uploadedBytes = 0
        /// An answer has begun and not ended.
        private var isAnswering = false
        /// Bytes that the reader has taken, about.
        private var takenBytes = 0
        private var takenAtCheck = 0
        /// Something came that is not HTTP: nothing more is read.
        private var isBroken = false
        /// Whether a request's headers were too long to be read.
        private var isOversized = false
        /// The end of the wait for headers, of the wait for a body, and of lingering.
        private var deadline: Scheduled<Void>?
        private var stallCheck: Scheduled<Void>?
        private var look: Scheduled<Void>?
        /// How long a caller who asks whether to send his body waits for a refusal before he is told to.
        private static let expectation = TimeAmount.milliseconds(10)
        private var expected: Scheduled<Void>?
        /// For each request that is not answered yet, whether it was `HEAD`: its answer ends with its headers.
        private var bodiless = CircularBuffer<Bool>()
        private var isBodiless = false

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
            stallCheck?.cancel()
            look?.cancel()
            expected?.cancel()
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
            case .head(var head):
                bodyBytes = 0
                asked += 1
                connections.isBusy(context.channel)
                isUpload = head.method == .put && BlobAddress.isBlob(path: head.path)
                uploadedBytes = 0
                if isUpload { watchUpload(context) } else { close(context, in: TimeAmount(limits.requestTimeout)) }
                if asked == 1, head.headerFields[.expect]?.lowercased() == "100-continue" { encourageLater(context) }
                // A server that answers GET answers HEAD (RFC 9110, 9.3.2).
                bodiless.append(head.method == .head)
                // Of a blob it asks for something else: what is kept of it.
                if head.method == .head, !BlobAddress.isBlob(path: head.path) { head.method = .get }
                return context.fireChannelRead(wrapInboundOut(.head(head)))
            case .body(let part):
                // A body that was refused is still read to its end, whoever sends it.
                uploadedBytes += part.readableBytes
                if !isSocket, !isUpload { bodyBytes += part.readableBytes }
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

        /// Closes the connection of an upload that comes too slowly.
        private func watchUpload(_ context: ChannelHandlerContext) {
            deadline?.cancel()
            let before = uploadedBytes
            let seconds = Int(limits.requestTimeout.wholeSeconds)
            let least = limits.blobRate.multipliedReportingOverflow(by: max(1, seconds))
            let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            deadline = context.eventLoop.scheduleTask(in: TimeAmount(limits.requestTimeout)) {
                let (handler, context) = loopBound.value
                guard handler.isUpload, handler.uploadedBytes - before >= (least.overflow ? .max : least.partialValue)
                else { return context.close(promise: nil) }
                handler.watchUpload(context)
            }
        }

        /// Tells a caller to send the body that he asks about (RFC 9110, 10.1.1), unless he is refused before.
        private func encourageLater(_ context: ChannelHandlerContext) {
            let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            expected = context.eventLoop.scheduleTask(in: Self.expectation) {
                let (handler, context) = loopBound.value
                guard !handler.isAnswering, context.channel.isActive else { return }
                handler.interim(context)
            }
        }

        private func interim(_ context: ChannelHandlerContext) {
            let interim = HTTPResponsePart.head(HTTPResponse(status: .continue))
            context.writeAndFlush(wrapOutboundOut(interim), promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            if !isBroken, asked == 0 {
                // The framework answers, if it was a request at all.
                asked = 1
                close(context, in: TimeAmount(limits.firstRequestTimeout))
            }
            isBroken = true
            if let error = error as? HTTPParserError, error == .headerOverflow { isOversized = true }
            context.fireErrorCaught(error)
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if let event = event as? ChannelEvent, event == .inputClosed { lookLater(context) }
            context.fireUserInboundEventTriggered(event)
        }

        /// A caller who has only ended his half of the connection still gets his answer. The connection of one who has
        /// hung up fails when something is written to it, and with it ends his request: so a comment or an interim
        /// answer is written from time to time, unless an answer is being written already.
        private func lookLater(_ context: ChannelHandlerContext) {
            let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            look = context.eventLoop.scheduleTask(in: Self.lookInterval) {
                let (handler, context) = loopBound.value
                guard handler.asked > 0, context.channel.isActive else { return }
                if handler.isSocket {
                    context.close(promise: nil)
                } else if handler.isStream {
                    let comment = HTTPResponsePart.body(ByteBuffer(string: EventStream.comment))
                    context.writeAndFlush(handler.wrapOutboundOut(comment), promise: nil)
                } else if !handler.isAnswering {
                    // Every caller has to pass over it (RFC 9110, 15.2).
                    handler.interim(context)
                }
                handler.lookLater(context)
            }
        }

        // MARK: What goes

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            switch unwrapOutboundIn(data) {
            case .head(let head):
                isSocket = head.status == .switchingProtocols
                isStream = isSocket || head.headerFields[.contentType] == EventStream.contentType
                // The rest of the request is messages, which come when they come.
                if isSocket { deadline?.cancel() }
                isPieced = head.headerFields[.acceptRanges] != nil
                // The answer to a request that came before is none to the upload.
                if isUpload, bodiless.count <= 1 {
                    // The rest of the upload is read and dropped.
                    isUpload = false
                    if deadline != nil { close(context, in: TimeAmount(limits.requestTimeout)) }
                }
                isAnswering = true
                expected?.cancel()
                isBodiless = bodiless.first ?? false
                if isBroken, let (head, body) = explained(head) {
                    context.write(wrapOutboundOut(.head(head)), promise: nil)
                    context.write(wrapOutboundOut(.body(body)), promise: promise)
                    writtenBytes += body.readableBytes
                } else {
                    context.write(data, promise: promise)
                }
            case .body(let part):
                guard !isBodiless else {
                    promise?.succeed()
                    // A stream without end would never come to it.
                    if isStream { context.close(promise: nil) }
                    return
                }
                writtenBytes += part.readableBytes
                context.write(data, promise: promise)
            case .end:
                // Bytes that were taken of a stream are held no longer.
                if isStream || isPieced { answeredBytes = max(answeredBytes, takenBytes) }
                (isStream, isPieced, isAnswering, isBodiless) = (false, false, false, false)
                _ = bodiless.popFirst()
                let taken = promise ?? context.eventLoop.makePromise()
                let written = writtenBytes
                let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
                taken.futureResult.whenComplete { _ in
                    let (handler, context) = loopBound.value
                    handler.answeredBytes = written
                    handler.answered(context)
                }
                context.write(data, promise: taken)
            }
            if stallCheck == nil, context.channel.isActive { checkLater(context) }
        }

        /// The framework's refusal of a request that it cannot read, with headers and a body like any other refusal.
        private func explained(_ head: HTTPResponse) -> (HTTPResponse, ByteBuffer)? {
            guard head.status == .badRequest, head.headerFields[.contentLength] == "0" else { return nil }
            let problem =
                isOversized
                ? Problem(.headerTooLarge, "The first line and the headers are larger than the server takes.")
                : Problem(.malformedRequest, "The request is not HTTP/1.1.")
            let body = problem.body()
            var head = head
            head.status = HTTPResponse.Status(code: problem.code.status)
            head.headerFields[.contentType] = Problem.contentType
            head.headerFields[.contentLength] = String(body.count)
            head.headerFields[.cacheControl] = "no-store"
            head.headerFields[.tidemarkProtocol] = String(ProtocolVersion.current)
            return (head, ByteBuffer(bytes: body))
        }

        private func answered(_ context: ChannelHandlerContext) {
            guard context.channel.isActive else { return }
            asked = max(0, asked - 1)
            noteUnsent(context)
            guard asked == 0 else { return }
            connections.isIdle(context.channel)
            if isBroken { close(context, in: Self.lingering) }
        }

        // MARK: Readers that do not read

        private func checkLater(_ context: ChannelHandlerContext) {
            takenAtCheck = takenBytes
            let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            stallCheck = context.eventLoop.scheduleTask(in: TimeAmount(limits.writeTimeout)) {
                let (handler, context) = loopBound.value
                handler.check(context)
            }
        }

        /// Closes the connection of a reader that has taken nothing since the last check, although bytes wait for it.
        private func check(_ context: ChannelHandlerContext) {
            stallCheck = nil
            guard noteUnsent(context) > 0 else { return }
            if takenBytes > takenAtCheck { checkLater(context) } else { context.close(promise: nil) }
        }

        func flush(context: ChannelHandlerContext) {
            context.flush()
            noteUnsent(context)
        }

        @discardableResult
        private func noteUnsent(_ context: ChannelHandlerContext) -> Int {
            let options = context.channel.syncOptions
            let unsent = (try? options?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0
            let taken = writtenBytes - unsent
            // The next answer waits behind this one, where more requests have come already.
            let held = isStream || isPieced ? unsent : (writtenBytes - answeredBytes) * (asked > 1 ? 2 : 1)
            connections.note(unsent: held, of: context.channel, tookSome: taken > takenBytes)
            takenBytes = max(takenBytes, taken)
            return unsent
        }
    }
#endif
