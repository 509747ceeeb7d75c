#if Server
    import Foundation

    /// The command's output: results on standard output, everything else on standard error. Names and values in it may
    /// come from anybody, so nothing of them reaches the terminal as an order, or as a line of its own.
    enum Console {
        /// Writes a line at once, so that whoever reads a pipe sees it when it is true.
        static func line(_ text: String) { FileHandle.standardOutput.write(Data((text.printable + "\n").utf8)) }

        /// Writes a line for people beside the results.
        static func note(_ text: String) { FileHandle.standardError.write(Data((text.printable + "\n").utf8)) }
    }

    extension String {
        /// The text with control characters, and those that turn the direction of writing, spelled as in JSON.
        var printable: String {
            guard unicodeScalars.contains(where: Self.isControl) else { return self }
            var text = ""
            for scalar in unicodeScalars {
                guard Self.isControl(scalar) else {
                    text.unicodeScalars.append(scalar)
                    continue
                }
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
            return text
        }

        private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
            switch scalar.value {
            case 0..<0x20, 0x7f...0x9f, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069: true
            default: false
            }
        }
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

        func report() {
            Console.note("error: \(what)")
            if let hint { Console.note("hint: \(hint)") }
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
