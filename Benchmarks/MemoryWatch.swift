#if canImport(Glibc)
    import Foundation
    import Glibc
    import Synchronization

    /// Looks every 20 ms how much memory processes have, and keeps the largest.
    final class MemoryWatch: Sendable {
        private struct State: Sendable {
            var peaks: [pid_t: Int]
            var isOver = false
        }

        private let before: [pid_t: Int]
        private let state: Mutex<State>

        private static let pause: UInt32 = 20_000

        init(_ processes: [pid_t]) {
            let now = Dictionary(uniqueKeysWithValues: processes.map { ($0, Self.resident($0)) })
            before = now
            state = Mutex(State(peaks: now))
            Thread.detachNewThread { [self] in
                while look() { usleep(Self.pause) }
            }
        }

        /// Bytes above what the process had in the beginning, at most so far.
        func grown(_ process: pid_t) -> Int {
            let peak = state.withLock { state in state.peaks[process] ?? 0 }
            return peak - (before[process] ?? 0)
        }

        func end() { state.withLock { state in state.isOver = true } }

        /// Returns whether there will be another look.
        private func look() -> Bool {
            let found = before.keys.map { ($0, Self.resident($0)) }
            return state.withLock { state in
                for (process, bytes) in found { state.peaks[process] = max(state.peaks[process] ?? 0, bytes) }
                return !state.isOver
            }
        }

        /// The bytes of a process that are in memory (`VmRSS`); 0 where there is no such process.
        private static func resident(_ process: pid_t) -> Int {
            let descriptor = open("/proc/\(process)/status", O_RDONLY)
            guard descriptor >= 0 else { return 0 }
            defer { close(descriptor) }
            var buffer = [UInt8](repeating: 0, count: 8 << 10)
            let count = read(descriptor, &buffer, buffer.count)
            let text = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
            guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }) else { return 0 }
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            return words.count > 1 ? (Int(words[1]) ?? 0) << 10 : 0
        }
    }
#endif
