#if Server
    import Foundation
    import Testing

    #if canImport(Glibc)
        import Glibc
    #endif

    /// A bare TCP connection to this machine.
    final class Socket: Sendable {
        private let descriptor: Int32

        /// - Parameter receiveBuffer: bytes that the system takes for it before somebody reads, about.
        init(port: Int, receiveBuffer: Int32? = nil) throws {
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            if var receiveBuffer {
                setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
            }
            var address = sockaddr_in.loopback(port: port)
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let status = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) }
            }
            guard status == 0 else { throw POSIXError(.ECONNREFUSED) }
        }

        deinit { close(descriptor) }

        /// Says that nothing more comes, and goes on reading.
        func endWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

        /// Has the connection reset where this is let go of, and not ended in order.
        func resetsAtEnd() {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }

        /// Waits as a task does, not as a thread: the server is in this process, and needs the threads of tasks.
        func write(_ text: String) async throws { _ = try await write(Array(text.utf8)) }

        /// - Returns: bytes that were not taken: the other side has gone, or takes nothing for long.
        @discardableResult
        func write(_ bytes: [UInt8]) async throws -> Int {
            var rest = bytes[...]
            for _ in 0..<1000 where !rest.isEmpty {
                let sent = rest.withUnsafeBytes {
                    send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
                }
                if sent < 0, errno != EAGAIN { break }
                rest = rest.dropFirst(max(0, sent))
                if !rest.isEmpty { try await Task.sleep(for: .milliseconds(10)) }
            }
            return rest.count
        }

        /// What has come, up to a few kilobytes: nothing at the connection's end, `nil` where that is yet to come.
        func received() -> [UInt8]? {
            var buffer = [UInt8](repeating: 0, count: 16 << 10)
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count < 0 { return errno == EAGAIN ? nil : [] }
            return Array(buffer.prefix(count))
        }

        /// Whether the other side has ended the connection, as far as this one can tell without waiting.
        var isClosed: Bool {
            var buffer = [UInt8](repeating: 0, count: 4096)
            var count = 0
            repeat { count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT)) } while count > 0
            return count == 0 || errno != EAGAIN
        }

        /// Waits until the other side holds nothing of the connection any more: it takes nothing that is sent. One that
        /// has only stopped to speak still would.
        func waitUntilGone(readingNothing: Bool = false) async throws {
            try await poll(every: .milliseconds(50)) {
                if !readingNothing { _ = isClosed }
                return refuses
            }
        }

        /// Whether a byte more is not taken, because nobody holds the other end.
        var refuses: Bool {
            let sent = send(descriptor, "a", 1, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            return sent < 0 && errno != EAGAIN
        }

        /// What comes next, up to a few kilobytes; nothing at the connection's end.
        func read() async throws -> String {
            var bytes: [UInt8]?
            try await poll {
                bytes = received()
                return bytes != nil
            }
            return String(decoding: bytes ?? [], as: UTF8.self)
        }
    }
#endif
