#if canImport(Glibc)
    import Foundation
    import Glibc
    import Synchronization

    /// A TCP proxy before a server on this machine, which counts the bytes that it carries and cuts all connections
    /// after every so many. It has threads of its own: tasks would wait for each other.
    final class CutWire: Sendable {
        struct Counts: Sendable {
            /// Bytes to the server.
            var up = 0
            /// Bytes from it.
            var down = 0
            var cuts = 0
            var total: Int { up + down }
        }

        private struct State: Sendable {
            var counts = Counts()
            var sinceCut = 0
            var pairs: [Int: Pair] = [:]
            var number = 0
        }

        let port: Int
        private let listener: Int32
        private let target: Int
        private let cutAfter: Int?
        private let bytesPerSecond: Int?
        private let state = Mutex(State())

        private static let chunkBytes = 64 << 10
        private static let queue: Int32 = 64

        /// - Parameters:
        ///   - target: the server's port.
        ///   - cutAfter: bytes of both directions after which it cuts; `nil`: never.
        ///   - bytesPerSecond: what one connection carries in one direction; `nil`: as much as it can.
        init(to target: Int, cutAfter: Int? = nil, bytesPerSecond: Int? = nil) throws {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            guard listener >= 0, Self.onLoopback(0, { bind(listener, $0, $1) }) == 0, listen(listener, Self.queue) == 0
            else { throw BlobBenchFailure(description: "no port for the proxy") }
            var (bound, size) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
            let status = withUnsafeMutablePointer(to: &bound) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &size) }
            }
            guard status == 0 else { throw BlobBenchFailure(description: "the proxy does not know its port") }
            port = Int(UInt16(bigEndian: bound.sin_port))
            self.listener = listener
            (self.target, self.cutAfter, self.bytesPerSecond) = (target, cutAfter, bytesPerSecond)
            Thread.detachNewThread { [self] in takeConnections() }
        }

        var counts: Counts { state.withLock { $0.counts } }

        /// Begins to count anew.
        func reset() { state.withLock { state in (state.counts, state.sinceCut) = (Counts(), 0) } }

        /// Takes no more connections, and ends those that are open.
        func end() {
            shutdown(listener, Int32(SHUT_RDWR))
            cutAll()
        }

        // MARK: Carrying

        private func takeConnections() {
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { break }
                guard let server = Self.connection(to: target) else {
                    close(client)
                    continue
                }
                Self.sendAtOnce(client)
                Self.sendAtOnce(server)
                let pair = Pair(client: client, server: server)
                let number = state.withLock { state in
                    state.number += 1
                    state.pairs[state.number] = pair
                    return state.number
                }
                Thread.detachNewThread { [self] in carry(client, server, pair, number, isUp: true) }
                Thread.detachNewThread { [self] in carry(server, client, pair, number, isUp: false) }
            }
            close(listener)
        }

        private func carry(_ source: Int32, _ target: Int32, _ pair: Pair, _ number: Int, isUp: Bool) {
            var buffer = [UInt8](repeating: 0, count: Self.chunkBytes)
            while true {
                let count = read(source, &buffer, buffer.count)
                guard count > 0 else { break }
                let isCut = note(count, isUp: isUp)
                guard Self.deliver(buffer[..<count], to: target) else { break }
                if isCut { cutAll() }
                if let bytesPerSecond { usleep(UInt32(count * 1_000_000 / bytesPerSecond)) }
            }
            pair.leave()
            state.withLock { state in state.pairs[number] = nil }
        }

        /// Returns whether the wire is cut behind these bytes.
        private func note(_ count: Int, isUp: Bool) -> Bool {
            state.withLock { state in
                if isUp { state.counts.up += count } else { state.counts.down += count }
                state.sinceCut += count
                guard let cutAfter, state.sinceCut >= cutAfter else { return false }
                state.sinceCut = 0
                state.counts.cuts += 1
                return true
            }
        }

        private func cutAll() {
            let pairs = state.withLock { state in Array(state.pairs.values) }
            for pair in pairs { pair.cut() }
        }

        // MARK: Sockets

        private static func deliver(_ bytes: ArraySlice<UInt8>, to target: Int32) -> Bool {
            var rest = bytes
            while !rest.isEmpty {
                let sent = rest.withUnsafeBytes { send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                guard sent > 0 else { return false }
                rest = rest.dropFirst(sent)
            }
            return true
        }

        private static func sendAtOnce(_ descriptor: Int32) {
            var isOn: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
        }

        private static func connection(to port: Int) -> Int32? {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            guard descriptor >= 0 else { return nil }
            if onLoopback(port, { connect(descriptor, $0, $1) }) == 0 { return descriptor }
            close(descriptor)
            return nil
        }

        private static func onLoopback(
            _ port: Int, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32
        ) -> Int32 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(port).bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            return withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, size) }
            }
        }
    }

    /// The two ends of a connection through the proxy. Whoever leaves last closes them, so that no thread ever works on
    /// a number that the system has given to somebody else.
    private final class Pair: Sendable {
        private let client: Int32
        private let server: Int32
        private let carriers = Mutex(2)

        init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }

        func cut() {
            carriers.withLock { carriers in
                guard carriers > 0 else { return }
                shutdown(client, Int32(SHUT_RDWR))
                shutdown(server, Int32(SHUT_RDWR))
            }
        }

        func leave() {
            cut()
            carriers.withLock { carriers in
                carriers -= 1
                guard carriers == 0 else { return }
                close(client)
                close(server)
            }
        }
    }
#endif
