#if Server
    import Foundation

    /// What the command says: results on standard output, everything else on standard error.
    enum Console {
        /// Writes a line at once, so that whoever reads a pipe sees it when it is true.
        static func line(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

        /// Writes a line for people beside the results.
        static func note(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }
    }

    /// An error as a person reads it: what went wrong, and what to do about it.
    struct Failure: Error, Hashable, CustomStringConvertible {
        var what: String
        var hint: String?

        init(_ what: String, hint: String? = nil) {
            self.what = what
            self.hint = hint
        }

        var description: String { "error: \(what)" + (hint.map { "\nhint: \($0)" } ?? "") }

        func report() { Console.note(description) }
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
