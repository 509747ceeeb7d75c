#if Server
    import TidemarkServer
    import TidemarkWire

    /// Reads the `paths` of `tidemark.yaml`: entities as clients of other systems know them.
    enum PathReader {
        private static let allowed = [
            "entity", "scope", "id", "lastModified", "updatedAt", "deletedAt", "members", "event",
        ]

        static func paths(_ node: CheckedNode) throws -> [EntityPath] {
            try node.members().map { name, key, value in
                guard EntityPath.isPath(name) else {
                    throw key.failure(
                        "`\(name)` cannot be a path",
                        hint: "take the name of an entity without a slash; "
                            + EntityPath.reserved.sorted().joined(separator: ", ") + " are taken")
                }
                return try path(name, value)
            }
        }

        private static func path(_ name: String, _ node: CheckedNode) throws -> EntityPath {
            let members = try node.mapping(allowed: allowed)
            var path = EntityPath(name)
            if let place = members["entity"] {
                path.entity = try place.string()
                guard Identifier.isEntity(path.entity) else {
                    throw place.failure("`\(path.entity)` is not an entity's name", hint: Identifier.entityHint)
                }
            }
            if let place = members["scope"] {
                let pattern = try place.string()
                guard Scope(pattern.replacing("{sub}", with: "x")) != nil else {
                    throw place.failure("`\(pattern)` is not a scope's name, with or without `{sub}` in it")
                }
                path.scope = pattern
            }
            let names: [(String, WritableKeyPath<EntityPath, String>)] = [
                ("id", \.id), ("lastModified", \.lastModified), ("updatedAt", \.updatedAt), ("deletedAt", \.deletedAt),
            ]
            for (key, place) in names { path[keyPath: place] = try members[key]?.string() ?? path[keyPath: place] }
            if let place = members["event"] {
                path.event = try place.string()
                guard path.event.wholeMatch(of: /[A-Za-z0-9_-]{1,64}/) != nil else {
                    throw place.failure("`event` takes letters, digits, `-` and `_`")
                }
            }
            path.members = try members["members"].map(read) ?? [:]
            return path
        }

        /// A name, or `{name: …, form: …}`.
        private static func read(_ node: CheckedNode) throws -> [String: EntityPath.Member] {
            var read: [String: EntityPath.Member] = [:]
            var taken: Set<String> = []
            for (field, _, value) in try node.members() {
                var member = EntityPath.Member(field)
                if value.isScalar {
                    member.name = try value.string()
                } else {
                    let parts = try value.mapping(allowed: ["name", "form"])
                    member.name = try parts["name"]?.string() ?? field
                    member.form = try parts["form"]?.choice(of: EntityPath.Form.self) ?? .plain
                }
                guard taken.insert(member.name).inserted else {
                    throw value.failure("two fields cannot both be called `\(member.name)`")
                }
                read[field] = member
            }
            return read
        }
    }
#endif
