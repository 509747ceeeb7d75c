#if Server
    import ArgumentParser
    import Foundation
    import Testing

    @testable import TidemarkCommand

    /// The manual page and what shells complete by: made from what --help is made from.
    @Suite struct ManualTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func manual(_ arguments: [String] = []) async throws -> String {
            let result = try await ChildProcess(ServeTests.command, ["manual"] + arguments).result()
            #expect(result.status == 0, "\(result.errors)")
            return result.output
        }

        /// Runs a program of the system where it is there.
        private func run(_ program: String, _ arguments: [String]) async throws -> (status: Int32, output: String)? {
            guard FileManager.default.isExecutableFile(atPath: program) else { return nil }
            let result = try await ChildProcess(URL(filePath: program), arguments).result()
            return (result.status, result.output + result.errors)
        }

        /// The options of all commands, as --help names them.
        private func options() throws -> Set<String> {
            var options: Set<String> = []
            for command in TidemarkTool.configuration.subcommands {
                options.formUnion(command.helpMessage().matches(of: /--[a-z][a-z-]+/).map { String($0.0) })
            }
            return options
        }

        @Test("every command and every option stands in the manual page, which renders without a complaint")
        func page() async throws {
            let page = try await manual()
            let plain = page.replacing("\\-", with: "-")
            let options = try options()
            let missing = options.subtracting(["--help", "--version"]).filter { !plain.contains($0) }
            #expect(options.count > 40 && missing.isEmpty, "\(missing)")
            for section in ["ENVIRONMENT", "EXIT STATUS"] { #expect(plain.contains(".SH \(section)\n")) }
            #expect(plain.contains("TIDEMARK_PARTITIONS"))
            for command in TidemarkTool.configuration.subcommands {
                #expect(plain.contains(".SS tidemark \(command._commandName)\n"), "\(command._commandName)")
            }
            let path = folder.path("tidemark.1")
            try page.write(toFile: path, atomically: true, encoding: .utf8)
            let groff = try await run("/usr/bin/groff", ["-man", "-Tutf8", "-ww", path])
            guard let shown = groff else { return }
            #expect(shown.status == 0 && !shown.output.contains(": warning: "), "\(shown.output.prefix(500))")
            #expect(shown.output.contains("--scope-column"))
        }

        @Test("the completions name every command, and bash can read its own", arguments: ["bash", "zsh", "fish"])
        func completions(shell: String) async throws {
            let script = try await manual(["--completions", shell])
            for command in TidemarkTool.configuration.subcommands {
                #expect(script.contains(command._commandName), "\(command._commandName)")
            }
            #expect(script.contains("scope-column"))
            let path = folder.path(shell)
            try script.write(toFile: path, atomically: true, encoding: .utf8)
            guard let read = try await run("/usr/bin/\(shell)", ["-n", path]) else { return }
            #expect(read.status == 0, "\(read.output)")
        }

        @Test(
            "they complete files where a file is named, and the words where only some are known",
            arguments: [
                ("bash", "1)\n        __tidemark_add_completions -f\n"), ("zsh", "':file:_files'"),
                ("fish", #""tidemark sync" -eq 1' -F"#),
            ])
        func completesFiles(shell: String, file: String) async throws {
            let script = try await manual(["--completions", shell])
            #expect(script.contains(file))
            let quoted = { (words: [String]) in
                switch shell {
                case "bash": words.map { "'\($0)'" }.joined(separator: "$'\\n'")
                case "zsh": "(" + words.map { "'\($0)'" }.joined(separator: " ") + ")"
                default: "'" + words.joined(separator: " ") + "'"
                }
            }
            let levels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]
            for words in [levels, ["zsh", "bash", "fish"], ["service"]] {
                #expect(script.contains(quoted(words)), "\(words)")
            }
            #expect(script.contains("--config[Declarations and settings, as YAML.]:file:_files") || shell != "zsh")
        }

        @Test(
            "`make install` puts the command, its page and its completions below a prefix; --remove takes them away"
        )
        func installed() async throws {
            let root = folder.path("root")
            let folders = URL(filePath: #filePath).pathComponents.dropLast(4)
            let script = URL(filePath: "/" + folders.dropFirst().joined(separator: "/") + "/Scripts/install")
            let environment = [
                "DESTDIR": root, "PREFIX": "/usr", "TIDEMARK_BIN": ServeTests.command.path(percentEncoded: false),
            ]
            let result = try await ChildProcess(script, [], environment: environment).result()
            #expect(result.status == 0, "\(result.errors)")
            let files = [
                "bin/tidemark", "share/man/man1/tidemark.1", "share/bash-completion/completions/tidemark",
                "share/zsh/site-functions/_tidemark", "share/fish/vendor_completions.d/tidemark.fish",
            ]
            for file in files { #expect(FileManager.default.fileExists(atPath: "\(root)/usr/\(file)"), "\(file)") }
            let removed = try await ChildProcess(script, ["--remove"], environment: environment).result()
            #expect(removed.status == 0, "\(removed.errors)")
            for file in files { #expect(!FileManager.default.fileExists(atPath: "\(root)/usr/\(file)"), "\(file)") }
        }

        @Test("colors go to terminals only")
        func colors() async throws {
            let plain = Palette(isColored: false)
            let colored = Palette(isColored: true)
            #expect(plain.painted("error: x") == "error: x")
            #expect(colored.painted("error: x") == "\u{1b}[1;31merror:\u{1b}[0m x")
            #expect(colored.painted("  hint: x: y") == "  \u{1b}[36mhint:\u{1b}[0m x: y")
            #expect(colored.painted("table error: 1 row") == "table error: 1 row")
            let piped = try await ChildProcess(ServeTests.command, ["status", "/nowhere"]).result()
            #expect(piped.status == 1 && !piped.errors.contains("\u{1b}"))
        }
    }
#endif
