#if Server
    import Foundation
    import Synchronization
    import TidemarkWire

    /// The command's output: results on standard output, everything else on standard error. Names and values in it may
    /// come from anybody, so nothing of them reaches the terminal as an order, or as a line of its own.
    enum Console {
        /// Writes a line at once, so that whoever reads a pipe sees it when it is true.
        static func line(_ text: String) { write(text, to: STDOUT_FILENO) }

        /// Writes a line for people beside the results.
        static func note(_ text: String) { write(text, to: STDERR_FILENO) }

        /// Writes a text as it is: it is the command's own, and its lines end where they should.
        static func text(_ text: String) { put(text.hasSuffix("\n") ? text : text + "\n", to: STDOUT_FILENO) }

        /// The text that stands on the terminal's last line for now.
        private static let live = Mutex<String?>(nil)

        private static func write(_ text: String, to descriptor: Int32) {
            let line = Palette(for: descriptor).painted(text.printable)
            live.withLock { live in
                if live != nil { draw("") }
                put(line + "\n", to: descriptor)
                if let live { draw(live) }
            }
        }

        /// Overwrites the terminal's present line, or takes that line away. A task that was cancelled writes none.
        static func overwrite(_ text: String?) {
            live.withLock { live in
                guard text == nil || !Task.isCancelled else { return }
                live = text
                draw(text ?? "")
            }
        }

        /// Whether a person looks at a line that changes. A terminal that knows no escapes cannot take one away again.
        static func isLive(isJSON: Bool) -> Bool {
            isatty(STDERR_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb" && !isJSON
        }

        private static func draw(_ text: String) {
            put("\r\(text.printable.prefix(width - 1))\u{1b}[K", to: STDERR_FILENO)
        }

        /// Writes all of a text. Where nobody reads the results any more, the command ends as SIGPIPE ends programs;
        /// errors that cannot be written are dropped.
        private static func put(_ text: String, to descriptor: Int32) {
            var bytes = Array(text.utf8)[...]
            while !bytes.isEmpty {
                let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
                if count >= 0 {
                    bytes = bytes.dropFirst(count)
                } else if errno != EINTR {
                    guard descriptor == STDOUT_FILENO else { return }
                    if errno == EPIPE { _exit(128 + SIGPIPE) }
                    let reason = String(cString: strerror(errno))
                    put("error: the output cannot be written: \(reason)\n", to: STDERR_FILENO)
                    _exit(1)
                }
            }
        }

        private static var width: Int {
            var size = winsize()
            let isKnown = ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 1
            return isKnown ? Int(size.ws_col) : 80
        }
    }

    /// How far a command has come, over one line of a terminal; nothing where nobody looks at one.
    final class LiveLine: Sendable {
        private static let pause = Duration.milliseconds(100)

        private let isLive: Bool
        private let shown = Mutex<ContinuousClock.Instant?>(nil)

        init(isJSON: Bool) { isLive = Console.isLive(isJSON: isJSON) }

        /// Shows a text, unless another one has come just now.
        func show(_ text: String) {
            guard isLive else { return }
            let isDue = shown.withLock { shown in
                let now = ContinuousClock.now
                if let last = shown, now - last < Self.pause { return false }
                shown = now
                return true
            }
            if isDue { Console.overwrite(text) }
        }

        /// Takes the line off the terminal.
        func end() { if isLive { Console.overwrite(nil) } }
    }

    /// Colours for the words with which lines begin, where a person looks at a terminal and has not asked for none
    /// (https://no-color.org).
    struct Palette: Hashable {
        private let isColored: Bool

        init(isColored: Bool) { self.isColored = isColored }

        init(for descriptor: Int32) {
            let environment = ProcessInfo.processInfo.environment
            isColored =
                isatty(descriptor) == 1 && environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
        }

        private static let colors = [
            "error": "1;31", "refused": "31", "rejected": "31", "warning": "33", "conflict": "33", "conflicts": "33",
            "quarantined": "33", "orphaned": "33", "undecided": "33", "to confirm": "33", "pending": "36",
            "sent": "36", "blocked": "36", "hint": "36",
        ]

        /// The line with its first word in color, if that is one of those that want attention.
        func painted(_ line: String) -> String {
            let lead = line.prefix { $0 == " " }
            guard isColored, let colon = line.firstIndex(of: ":"),
                let color = Self.colors[String(line[lead.endIndex..<colon])]
            else { return line }
            return "\(lead)\u{1b}[\(color)m\(line[lead.endIndex...colon])\u{1b}[0m\(line[line.index(after: colon)...])"
        }
    }

    /// The part of a long list that is shown; `--json` has all of it.
    enum Excerpt {
        private static let shown = 20

        static func lines<Element>(
            _ all: [Element], _ what: String, by line: (Element) -> [String]
        ) -> [String] {
            let rest = all.count - shown
            let more = rest > 0 ? ["  … and \(rest) more \(what); --json lists all"] : []
            return all.prefix(shown).flatMap(line) + more
        }
    }

    /// An error as a person reads it: what went wrong, and what to do about it.
    struct Failure: Error, Hashable, CustomStringConvertible {
        var what: String
        /// Each thing that is wrong, where there are several.
        var details: [String] = []
        var hint: String?
        /// The name of the kind of error, for programs.
        var code: String?

        init(_ what: String, hint: String? = nil, code: String? = nil) {
            self.what = what
            self.hint = hint
            self.code = code
        }

        var lines: [String] {
            ["error: \(what)" + (code.map { " (\($0))" } ?? "")] + details.map { "  - \($0)" }
                + (hint.map { ["hint: \($0)"] } ?? [])
        }

        var description: String { lines.joined(separator: "\n") }

        /// Says it on standard error, as one line of JSON where the caller asked for that.
        func report(asJSON isJSON: Bool = false) {
            if isJSON, let text = try? JSON.text(ErrorReport(self)) { return Console.note(text) }
            lines.forEach(Console.note)
        }
    }

    /// An error as a program reads it.
    struct ErrorReport: Codable, Hashable {
        struct Body: Codable, Hashable {
            /// A code of the client's errors, `usage` for a command line that was not understood, or `failed`.
            var code: String
            var message: String
            var details: [String]?
            var hint: String?
        }

        var error: Body

        init(_ failure: Failure) {
            error = Body(
                code: failure.code ?? "failed", message: failure.what,
                details: failure.details.isEmpty ? nil : failure.details, hint: failure.hint)
        }
    }

    extension Duration {
        /// Reads `30d`, `15m`, `1h`, `45s`, or a bare number of seconds; `nil` for anything else or beyond a century.
        init?(text: String) {
            let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
            let unit = text.last.flatMap { units[$0] }
            guard let number = Int64(unit == nil ? text : String(text.dropLast())), number > 0 else { return nil }
            let (seconds, overflow) = number.multipliedReportingOverflow(by: unit ?? 1)
            guard !overflow, seconds <= 36_525 * 86_400 else { return nil }
            self = .seconds(seconds)
        }
    }
#endif
