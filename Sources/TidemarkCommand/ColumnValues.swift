#if Server
    import ArgumentParser
    import Tidemark

    /// The values of `--set column=value`: NULL is none, numbers are numbers, and anything else is a text; quotes make
    /// a text of everything.
    enum ColumnValues {
        /// - Throws: `ValidationError` where a text sets nothing.
        static func read(_ texts: [String]) throws -> [String: Value] {
            var values: [String: Value] = [:]
            for text in texts {
                let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
                guard parts.count == 2, !parts[0].isEmpty else {
                    throw ValidationError("'\(text)' sets nothing; write --set column=value.")
                }
                values[parts[0]] = value(parts[1])
            }
            return values
        }

        private static func value(_ text: String) -> Value {
            if text.count > 1, text.hasPrefix("'"), text.hasSuffix("'") {
                return .text(String(text.dropFirst().dropLast()).replacing("''", with: "'"))
            }
            if text.uppercased() == "NULL" { return .null }
            if let integer = Int64(text) { return .integer(integer) }
            if let real = Double(text), real.isFinite { return .real(real) }
            return .text(text)
        }
    }
#endif
