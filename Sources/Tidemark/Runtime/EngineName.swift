import Foundation

/// The name of an engine in the file, by which other processes can tell that its own has ended.
struct EngineName: Hashable, Sendable {
    var host: String
    var process: Int32
    /// The app or extension; `-` where it is no bundle.
    var program: String
    /// Made up once for the process, since its number comes again.
    var token: String
    var number: Int

    /// The process's own, with the number of no engine.
    static let own = EngineName(
        host: hostName(), process: ProcessInfo.processInfo.processIdentifier,
        program: word(Bundle.main.bundleIdentifier ?? ""), token: String(UInt64.random(in: .min ... .max), radix: 16),
        number: 0)
    private static let count = Locked(0)
    /// The numbers of this process's engines that run.
    private static let running = Locked(Set<Int>())

    /// A name for one more engine of this process, which runs until its end is noted.
    static func next() -> EngineName {
        var name = own
        name.number = count.withLock { count in
            count += 1
            return count
        }
        let number = name.number
        running.withLock { running in _ = running.insert(number) }
        return name
    }

    static func noteEnd(of name: String) {
        let words = Self.words(name)
        guard words.count == 5, words[3] == own.token, let number = Int(words[4]) else { return }
        running.withLock { running in _ = running.remove(number) }
    }

    var text: String { "\(host) \(process) \(program) \(token) \(number)" }

    /// Whether an engine of that name may still be there; `false` only where it or its process is known to have ended.
    ///
    /// - Parameters:
    ///   - isFirst: whether the engine that asks has found no other engine's name in the file yet.
    ///   - hasOneProcess: whether a program has one process at a time here.
    func mayMeet(_ name: String, isFirst: Bool, hasOneProcess: Bool) -> Bool {
        let words = Self.words(name)
        guard words.count == 5 else { return true }
        if words[3] == token {
            guard let number = Int(words[4]) else { return false }
            return Self.running.withLock { running in running.contains(number) }
        }
        // A name that was there before this process is an earlier one's, wherever the file was then. One that comes
        // later is of another process all the same, as extensions may have several.
        if isFirst, hasOneProcess, program != "-", words[2] == program { return false }
        guard words[0] == host, let process = Int32(words[1]), process > 0 else { return true }
        return process != self.process && (kill(process, 0) == 0 || errno != ESRCH)
    }

    private static func words(_ name: String) -> [String] {
        name.split(separator: " ", omittingEmptySubsequences: false).map { String($0) }
    }

    private static func hostName() -> String {
        var bytes = [CChar](repeating: 0, count: 256)
        guard gethostname(&bytes, bytes.count - 1) == 0 else { return "-" }
        return word(String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self))
    }

    private static func word(_ text: String) -> String {
        let word = text.filter { !$0.isWhitespace }
        return word.isEmpty ? "-" : word
    }
}
