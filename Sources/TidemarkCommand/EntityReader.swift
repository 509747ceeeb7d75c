#if Server
    import TidemarkServer
    import TidemarkWire

    /// Reads the `entities` of `tidemark.yaml`.
    enum EntityReader {
        private static let allowed = [
            "kind", "conflict", "deletes", "serverFields", "direction", "priority", "ids", "defaults", "patch", "brake",
            "subscope", "attachments",
        ]

        static func entities(_ node: CheckedNode) throws -> [EntityDeclaration] {
            var names: [EntityKey: String] = [:]
            return try node.members().map { name, key, value in
                guard Identifier.isEntity(name) else {
                    throw key.failure("`\(name)` is not an entity's name", hint: Identifier.entityHint)
                }
                if let other = names.updateValue(name, forKey: EntityKey(name)) {
                    throw key.failure(
                        "`\(name)` and `\(other)` are one entity",
                        hint: "names that differ only in the case of ASCII letters are the same; declare it once")
                }
                return try entity(name, value)
            }
        }

        private static func entity(_ name: String, _ node: CheckedNode) throws -> EntityDeclaration {
            let members = try node.mapping(allowed: allowed)
            var declaration = EntityDeclaration(name)
            declaration.kind = try members["kind"]?.choice(of: EntityDeclaration.Kind.self) ?? .state
            declaration.direction = try members["direction"]?.choice(of: EntityDeclaration.Direction.self) ?? .both
            declaration.conflict = try members["conflict"]?.choice(of: ConflictPolicy.self) ?? .mergeFields
            declaration.deletes = try members["deletes"]?.choice(of: DeletePolicy.self) ?? .win
            declaration.serverFields = try members["serverFields"]?.strings() ?? []
            declaration.priority = try members["priority"]?.integer(in: 0...99) ?? declaration.priority
            declaration.ids = try members["ids"]?.choice(of: EntityDeclaration.IDSource.self) ?? .client
            declaration.defaults = try members["defaults"].map(defaults) ?? [:]
            declaration.patch = try members["patch"]?.strings() ?? []
            declaration.brake = try members["brake"].flatMap(brake)
            declaration.subscope = try members["subscope"].map(subscope)
            if let node = members["attachments"] { declaration.attachments = try attachments(node, of: declaration) }
            guard declaration.kind == .events else { return declaration }
            for key in ["conflict", "deletes", "serverFields", "ids", "defaults", "patch", "brake"] {
                guard let place = members[key] else { continue }
                throw place.failure(
                    "`\(key)` says nothing about events, which are only appended",
                    hint: "leave it out, or declare \(name) as `kind: state`")
            }
            return declaration
        }

        /// A blob's reference is a short text that nobody merges and no default can stand for.
        private static func attachments(_ node: CheckedNode, of declaration: EntityDeclaration) throws -> [String] {
            let names = try node.strings()
            for (index, name) in names.enumerated() {
                if let other = names[..<index].first(where: { Identifier.isSameName($0, name) }) {
                    throw node.failure(
                        "`\(name)` and `\(other)` are one field",
                        hint: "names that differ only in the case of ASCII letters are the same; name it once")
                }
                if declaration.patch.contains(where: { Identifier.isSameName($0, name) }) {
                    throw node.failure(
                        "`\(name)` cannot be an attachment and in `patch`",
                        hint: "an attachment's value is a short reference: leave it out of `patch`")
                }
                if declaration.defaults.contains(where: { Identifier.isSameName($0.key, name) && $0.value != .null }) {
                    throw node.failure(
                        "the attachment `\(name)` cannot have a default",
                        hint: "no blob is there before somebody sends it: leave it out of `defaults`")
                }
            }
            return names
        }

        private static func subscope(_ node: CheckedNode) throws -> String {
            let name = try node.string()
            guard Identifier.isSubscope(name) else {
                throw node.failure("`\(name)` is not a sub-scope's name", hint: Identifier.subscopeHint)
            }
            return name
        }

        /// `true`, `false`, or its numbers.
        private static func brake(_ node: CheckedNode) throws -> DeleteBrake? {
            if node.isScalar { return try node.bool() ? DeleteBrake() : nil }
            let members = try node.mapping(allowed: ["rows", "window"])
            var brake = DeleteBrake()
            brake.rows = try members["rows"]?.integer(in: 1...1_000_000) ?? brake.rows
            guard let window = members["window"] else { return brake }
            brake.window = try window.duration()
            guard (.seconds(60) ... .seconds(30 * 86_400)).contains(brake.window) else {
                throw window.failure("`window` has to be a time from 1m to 30d")
            }
            return brake
        }

        private static func defaults(_ node: CheckedNode) throws -> [String: Value] {
            var defaults: [String: Value] = [:]
            for (name, _, value) in try node.members() { defaults[name] = try value.value() }
            return defaults
        }
    }
#endif
