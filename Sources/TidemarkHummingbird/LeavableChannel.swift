#if Server
    import HummingbirdCore
    import Logging
    import NIOCore
    import NIOHTTPTypes

    /// HTTP/1.1 whose work ends with the connection: what waits for a turn by then is not carried out, and its memory
    /// is free (I14). Hummingbird itself hears of a caller who has gone when it writes the answer.
    struct LeavableChannel: ServerChildChannel {
        let base: HTTP1Channel

        func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
            base.setup(channel: channel, logger: logger)
        }

        func handle(value: HTTP1Channel.Value, logger: Logger) async {
            let work = Task { await base.handle(value: value, logger: logger) }
            value.channel.closeFuture.whenComplete { _ in work.cancel() }
            await withTaskCancellationHandler {
                await work.value
            } onCancel: {
                work.cancel()
            }
        }
    }
#endif
