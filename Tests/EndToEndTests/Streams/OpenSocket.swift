#if Server
    import Foundation
    import Synchronization
    import Testing

    /// A WebSocket that somebody holds, byte by byte: it says what no library would.
    final class OpenSocket: Sendable {
        /// What RFC 6455 calls a frame's kind.
        enum Opcode: UInt8 { case continuation = 0, text, binary, reserved, close = 8, ping, pong }

        fileprivate struct State {
            var bytes: [UInt8] = []
            var texts: [String] = []
            var pongs: [[UInt8]] = []
            var pings = 0
            var code: Int?
            var reason = ""
            var isEnded = false
        }

        private static let patience: Duration = .seconds(60)
        private static let mask: [UInt8] = [0x12, 0x34, 0x56, 0x78]
        /// The example of RFC 6455, 1.3, whose answer is `accepted`.
        private static let key = "dGhlIHNhbXBsZSBub25jZQ=="
        static let accepted = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

        /// The answer to its request, with its body where it is no socket.
        let answer: String
        private let socket: Socket
        private let answersPings: Bool
        private let state = Mutex(State())

        /// - Parameters:
        ///   - behind: frames that are sent before the answer is there.
        ///   - receiveBuffer: bytes that the system takes for it before somebody reads, about.
        init(
            _ live: LiveServer, _ query: String = "", _ token: String?, headers: String = OpenSocket.headers,
            behind: [UInt8] = [], receiveBuffer: Int32? = nil, answersPings: Bool = true
        ) async throws {
            self.answersPings = answersPings
            socket = try Socket(port: live.port, receiveBuffer: receiveBuffer)
            let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
            let request = "GET /sync/socket?\(query) HTTP/1.1\r\nHost: x\r\n\(headers)\(authorization)\r\n"
            try await socket.write(Array(request.utf8) + behind)
            var bytes: [UInt8] = []
            let deadline = ContinuousClock.now + Self.patience
            while ContinuousClock.now < deadline {
                if let end = Self.end(of: bytes) {
                    answer = String(decoding: bytes[..<end], as: UTF8.self)
                    let rest = Array(bytes[end...])
                    state.withLock { $0.bytes = rest }
                    return
                }
                switch socket.received() {
                case nil: try await Task.sleep(for: .milliseconds(5))
                case []?: throw POSIXError(.ECONNRESET)
                case let more?: bytes += more
                }
            }
            throw POSIXError(.ETIMEDOUT)
        }

        static let headers = """
            Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: \(key)\r
            Sec-WebSocket-Version: 13\r

            """

        /// Where an answer ends: behind its headers, or the body that they announce.
        private static func end(of bytes: [UInt8]) -> Int? {
            let text = String(decoding: bytes, as: UTF8.self)
            guard let headers = text.range(of: "\r\n\r\n") else { return nil }
            let length = text[..<headers.lowerBound].split(separator: "\r\n").lazy
                .first { $0.lowercased().hasPrefix("content-length:") }?
                .split(separator: ":").last.flatMap { Int($0.trimmingCharacters(in: .whitespaces)) }
            let end = text[..<headers.upperBound].utf8.count + (length ?? 0)
            return bytes.count >= end ? end : nil
        }

        var status: Int { answer.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0 }

        /// The code of the refusal.
        var refusal: String? {
            answer.firstMatch(of: /"code":"([a-z_]+)"/).map { String($0.1) }
        }

        // MARK: Saying

        func say(_ text: String) async throws { try await send(.text, Array(text.utf8)) }

        func send(_ opcode: Opcode, _ payload: [UInt8], isFinal: Bool = true) async throws {
            try await socket.write(Self.frame(opcode, payload, isFinal: isFinal))
        }

        /// - Returns: bytes that were not taken.
        @discardableResult
        func send(raw bytes: [UInt8]) async throws -> Int { try await socket.write(bytes) }

        static func frame(
            _ opcode: Opcode, _ payload: [UInt8], isFinal: Bool = true, isMasked: Bool = true
        ) -> [UInt8] {
            var bytes = [opcode.rawValue | (isFinal ? 0x80 : 0)]
            let mark: UInt8 = isMasked ? 0x80 : 0
            switch payload.count {
            case ...125: bytes.append(mark | UInt8(payload.count))
            case ...0xffff: bytes += [mark | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
            default:
                bytes.append(mark | 127)
                bytes += (0..<8).map { UInt8(payload.count >> (56 - 8 * $0) & 0xff) }
            }
            guard isMasked else { return bytes + payload }
            return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 % 4] }
        }

        // MARK: Hearing

        /// Takes in what has come.
        private func hear() async throws {
            while let more = socket.received() {
                guard !more.isEmpty else {
                    state.withLock { $0.isEnded = true }
                    break
                }
                state.withLock { $0.bytes += more }
            }
            while let frame = state.withLock({ Self.nextFrame(of: &$0.bytes) }) {
                let asked = state.withLock { $0.take(frame.opcode, frame.payload) }
                if asked, answersPings { try await send(.pong, frame.payload) }
            }
        }

        private static func nextFrame(of bytes: inout [UInt8]) -> (opcode: UInt8, payload: [UInt8])? {
            guard bytes.count >= 2 else { return nil }
            var (start, length) = (2, Int(bytes[1] & 0x7f))
            if length == 126 {
                guard bytes.count >= 4 else { return nil }
                (start, length) = (4, Int(bytes[2]) << 8 | Int(bytes[3]))
            }
            guard bytes.count >= start + length else { return nil }
            defer { bytes.removeFirst(start + length) }
            return (bytes[0] & 0x0f, Array(bytes[start..<start + length]))
        }

        func wait(until isThere: ([String]) -> Bool) async throws {
            let deadline = ContinuousClock.now + Self.patience
            while true {
                try await hear()
                let texts = state.withLock { $0.texts }
                if isThere(texts) { return }
                guard ContinuousClock.now < deadline, !isEnded else {
                    Issue.record("It has not come: \(texts.suffix(5)), \(ending)")
                    return
                }
                try await Task.sleep(for: .milliseconds(10))
            }
        }

        func wait(for text: String) async throws { try await wait { $0.contains(text) } }

        func wait(forHead head: Int, of scope: String) async throws {
            try await wait(for: #"{"event":"changes","scope":"\#(scope)","head":\#(head)}"#)
        }

        /// Reads to the end, and returns the code of the closing and its reason.
        func waitForEnd() async throws -> String {
            try await poll {
                try await hear()
                return isEnded
            }
            return ending
        }

        /// Waits until the connection has gone although nobody reads from it.
        func waitUntilGone() async throws { try await socket.waitUntilGone(readingNothing: true) }

        var ending: String {
            state.withLock { "\($0.code.map(String.init) ?? "-") \($0.reason)".trimmingCharacters(in: .whitespaces) }
        }

        var texts: [String] { state.withLock { $0.texts } }
        var pings: Int { state.withLock { $0.pings } }
        var pongs: [[UInt8]] { state.withLock { $0.pongs } }
        var isEnded: Bool { state.withLock { $0.isEnded } }
    }

    extension OpenSocket.State {
        /// - Returns: whether it wants a pong.
        fileprivate mutating func take(_ opcode: UInt8, _ payload: [UInt8]) -> Bool {
            switch OpenSocket.Opcode(rawValue: opcode) {
            case .text: texts.append(String(decoding: payload, as: UTF8.self))
            case .ping: pings += 1
            case .pong: pongs.append(payload)
            case .close:
                code = payload.count < 2 ? nil : Int(payload[0]) << 8 | Int(payload[1])
                reason = String(decoding: payload.dropFirst(2), as: UTF8.self)
            default: Issue.record("a frame of kind \(opcode)")
            }
            return opcode == OpenSocket.Opcode.ping.rawValue
        }
    }
#endif
