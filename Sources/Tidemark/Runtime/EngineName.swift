import Foundation

/// The name of an engine in the file, by which other processes can tell that its own has ended.
struct EngineName: Hashable, Sendable {
    private var host: String
    private var process: Int32
    /// The app or extension; `-` where it is no bundle.
    private var program: String
    /// Made up once for the process, since its number comes again.
    private var token: String
    private var number: Int

    private static let own = EngineName(
        host: hostName(), process: ProcessInfo.processInfo.processIdentifier,
        program: word(Bundle.main.bundleIdentifier ?? ""), token: String(UInt64.random(in: .min ... .max), radix: 16),
        number: 0)
    private static let count = Locked(0)

    /// A name for one more engine of this process.
    static func next() -> EngineName {
        var name = own
        name.number = count.withLock { count in
            count += 1
            return count
        }
        return name
    }

    var text: String { "\(host) \(process) \(program) \(token) \(number)" }

    /// Whether an engine of that name may still be there; `false` only where its process is known to have ended.
    static func mayBeThere(_ name: String) -> Bool {
        let words = name.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 5, words[0] == own.host, let process = Int32(words[1]), process > 0 else { return true }
        if process == own.process { return words[3] == own.token }
        // There a program has one process at a time, and none can look for those of others.
        if isMobilePlatform, own.program != "-", words[2] == own.program { return false }
        return kill(process, 0) == 0 || errno != ESRCH
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
