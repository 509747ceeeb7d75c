#if Server
    import ArgumentParser
    import Foundation

    struct ManualCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "manual",
            abstract: "Print the manual page, or what completes the command in a shell.",
            discussion: """
                Both are made from the declarations that --help is made from. `make install` puts them where the system
                looks for them.

                EXAMPLES
                  tidemark manual > /usr/local/share/man/man1/tidemark.1
                  tidemark manual --completions zsh > /usr/local/share/zsh/site-functions/_tidemark
                """)

        @Option(
            help: ArgumentHelp("bash, zsh or fish.", valueName: "shell"),
            completion: .list(CompletionShell.allCases.map(\.rawValue)))
        var completions: String?

        func run() throws {
            guard let completions else { return Console.text(try ManualPage(dump: TidemarkTool._dumpHelp()).text) }
            guard let shell = CompletionShell(rawValue: completions) else {
                let names = CompletionShell.allCases.map(\.rawValue).joined(separator: ", ")
                throw Failure("'\(completions)' is not a shell that can be completed", hint: "name one of \(names)")
            }
            Console.text(TidemarkTool.completionScript(for: shell))
        }
    }

    /// The manual page in the language of man(7).
    struct ManualPage: Hashable {
        private let command: CommandTree.Command

        /// - Parameter dump: the declarations, as ArgumentParser gives them.
        init(dump: String) throws { command = try CommandTree(dump: dump).command }

        var text: String {
            var page = Roff()
            page.macro("TH TIDEMARK 1 \"\" \"Tidemark \(TidemarkTool.configuration.version)\" \"User Commands\"")
            page.heading("NAME")
            page.line("\(command.commandName) \\- \(Roff.escaped(command.abstract ?? ""))")
            page.heading("SYNOPSIS")
            page.line("\\fBtidemark\\fR \\fIcommand\\fR [\\fIoptions\\fR]")
            page.heading("DESCRIPTION")
            page.prose(command.discussion)
            page.heading("COMMANDS")
            for part in command.parts.flatMap(\.withParts) {
                page.subheading("tidemark \(part.commandName)")
                page.prose(part.abstract)
                page.macro("PP")
                page.line(
                    (["\\fBtidemark \(Roff.escaped(part.commandName))\\fR"] + part.shown.map(\.synopsis))
                        .joined(separator: " "))
                page.prose(part.discussion)
                for argument in part.shown {
                    page.macro("TP")
                    page.line(argument.synopsisAlone)
                    page.line(
                        Roff.escaped([argument.abstract, argument.told].compactMap { $0 }.joined(separator: " ")))
                }
            }
            page.heading("ENVIRONMENT")
            page.list(Self.environment)
            page.heading("EXIT STATUS")
            page.list(Self.exitCodes)
            return page.text
        }

        private static let environment = [
            ("TIDEMARK_TOKEN", "The access token of sync and verify."),
            ("TIDEMARK_SECRET", "The secret with which a server's tokens are signed."),
            (
                "TIDEMARK_STORE, TIDEMARK_LISTEN, TIDEMARK_CONFIG, TIDEMARK_SECRET_FILE, TIDEMARK_LOG_LEVEL, "
                    + "TIDEMARK_PARTITIONS",
                "What the options of the same names say, where they are not given."
            ),
            ("NO_COLOR", "No colors, where it is set and not empty; TERM=dumb does the same."),
        ]

        private static let exitCodes = [
            ("0", "Done."),
            ("1", "Failed: standard error says why."),
            (
                "3",
                "Done, but something waits: refused edits, quarantined rows, tables that were left out, what is not in "
                    + "sync, an erasure that was not confirmed."
            ),
            ("64", "The command line was not understood."),
            ("141", "Whoever read the output has closed it."),
        ]
    }

    extension CommandTree.Argument {
        fileprivate var told: String? { defaultValue.map { "Default: \($0)." } }

        fileprivate var synopsisAlone: String {
            let value = "\\fI\(Roff.escaped(valueName ?? "value"))\\fR"
            if kind == "positional" { return value }
            let names = (names ?? []).map { "\\fB\(Roff.escaped($0.text))\\fR" }.joined(separator: ", ")
            return kind == "option" ? "\(names) \(value)" : names
        }

        fileprivate var synopsis: String {
            let more = isRepeating ?? false ? " ..." : ""
            return isOptional ?? true ? "[\(synopsisAlone)]\(more)" : "\(synopsisAlone)\(more)"
        }
    }

    /// Lines of troff, in which nothing of a text is taken for a request.
    private struct Roff {
        private(set) var text = ""

        static func escaped(_ text: String) -> String {
            text.unicodeScalars.reduce(into: "") { escaped, scalar in
                switch scalar {
                case "\\": escaped += "\\e"
                case "-": escaped += "\\-"
                case _ where scalar.isASCII: escaped.unicodeScalars.append(scalar)
                default:
                    let digits = String(scalar.value, radix: 16, uppercase: true)
                    escaped += "\\[u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "]"
                }
            }
        }

        mutating func macro(_ request: String) { text += ".\(request)\n" }
        mutating func heading(_ title: String) { macro("SH \(title)") }
        mutating func subheading(_ title: String) { macro("SS \(Self.escaped(title))") }

        /// Writes a line that is escaped already.
        mutating func line(_ line: String) {
            let isRequest = line.hasPrefix(".") || line.hasPrefix("'")
            text += (isRequest ? "\\&" : "") + line + "\n"
        }

        /// Writes words, each with its meaning.
        mutating func list(_ items: [(String, String)]) {
            for (name, meaning) in items {
                macro("TP")
                line("\\fB\(Self.escaped(name))\\fR")
                line(Self.escaped(meaning))
            }
        }

        /// Writes paragraphs; lines that are indented stay as they are.
        mutating func prose(_ prose: String?) {
            var isVerbatim = false
            var isOpen = false
            for line in (prose ?? "").split(separator: "\n", omittingEmptySubsequences: false) {
                let isExample = line.hasPrefix("  ")
                if isExample != isVerbatim {
                    macro(isExample ? "nf" : "fi")
                    isVerbatim = isExample
                }
                if line.isEmpty {
                    isOpen = false
                    continue
                }
                if !isOpen, !isExample { macro("PP") }
                isOpen = true
                self.line(Self.escaped(String(line)))
            }
            if isVerbatim { macro("fi") }
        }
    }
#endif
