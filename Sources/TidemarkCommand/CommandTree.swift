#if Server
    import Foundation

    /// The command's parts and their arguments, as ArgumentParser declares them: the manual and a check read these.
    struct CommandTree: Codable, Hashable {
        struct Command: Codable, Hashable {
            var commandName: String
            var defaultSubcommand: String?
            var abstract, discussion: String?
            var shouldDisplay: Bool?
            var subcommands: [Command]?
            var arguments: [Argument]?

            /// ArgumentParser's own `help` command stands among them.
            var parts: [Command] { (subcommands ?? []).filter { $0.shouldDisplay ?? true && $0.commandName != "help" } }
            /// The command and those beneath it, each by its whole name.
            var withParts: [Command] {
                [self] + parts.map { $0.named("\(commandName) \($0.commandName)") }
            }

            func part(named name: String) -> Command? { subcommands?.first { $0.commandName == name } }

            private func named(_ name: String) -> Command {
                var command = self
                command.commandName = name
                return command
            }

            /// Every command knows --help and --version, so that neither needs telling.
            var shown: [Argument] {
                (arguments ?? []).filter { argument in
                    let names = (argument.names ?? []).map(\.name)
                    return argument.shouldDisplay ?? true && !names.contains("help") && !names.contains("version")
                }
            }
        }

        struct Argument: Codable, Hashable {
            struct Name: Codable, Hashable {
                var kind, name: String

                var text: String { (kind == "long" ? "--" : "-") + name }
            }

            var kind: String
            var shouldDisplay, isOptional, isRepeating: Bool?
            var names: [Name]?
            var valueName, abstract, defaultValue: String?
        }

        var command: Command

        /// - Parameter dump: the declarations, as ArgumentParser gives them.
        init(dump: String) throws { self = try JSONDecoder().decode(Self.self, from: Data(dump.utf8)) }

        /// An option that takes one value and was given more: the parser would take the last and say nothing.
        static func overridden(in arguments: [String], dump: () -> String) throws -> String? {
            let words = arguments.prefix { $0 != "--" }
            let given = words.filter { $0.hasPrefix("--") }.map { String($0.prefix { $0 != "=" }) }
            // Nothing is read of the declarations as long as no option comes twice.
            guard Set(given).count < given.count else { return nil }
            var command = try CommandTree(dump: dump()).command
            for word in words {
                guard let next = command.part(named: word) else { break }
                command = next
            }
            while let next = command.defaultSubcommand.flatMap(command.part) { command = next }
            let single = (command.arguments ?? []).filter { $0.kind == "option" && $0.isRepeating != true }
                .flatMap { $0.names ?? [] }.map(\.text)
            return single.first { name in given.count { $0 == name } > 1 }
        }
    }
#endif
