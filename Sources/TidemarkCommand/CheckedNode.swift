#if Server
    import TidemarkWire
    import Yams

    /// A place in a YAML file that knows where it stands, so that every complaint names its line.
    struct CheckedNode {
        let node: Node
        let path: String
        /// The node's name in a complaint.
        let name: String

        init(_ node: Node, path: String, name: String) {
            self.node = node
            self.path = path
            self.name = name
        }

        /// Whether it is one value, and no list or mapping.
        var isScalar: Bool { node.scalar != nil }

        func failure(_ what: String, hint: String? = nil) -> Failure {
            let mark = node.mark
            return Failure("\(path):\(mark?.line ?? 1):\(mark?.column ?? 1): \(what)", hint: hint)
        }

        /// The members of a mapping: name, the place of the key, the value.
        func members() throws -> [(name: String, key: CheckedNode, value: CheckedNode)] {
            guard case .mapping(let mapping) = node else {
                throw failure("\(name) has to be a mapping, `key: value`", hint: nil)
            }
            return try mapping.map { key, value in
                guard case .scalar(let scalar) = key else {
                    throw CheckedNode(key, path: path, name: name).failure("a key has to be a word")
                }
                let text = scalar.string
                return (
                    text, CheckedNode(key, path: path, name: "`\(text)`"),
                    CheckedNode(value, path: path, name: "`\(text)`")
                )
            }
        }

        /// The members of a mapping of known keys.
        func mapping(allowed: [String], explaining: [String: String] = [:]) throws -> [String: CheckedNode] {
            var result: [String: CheckedNode] = [:]
            for (name, key, value) in try members() {
                if let explanation = explaining[name] {
                    throw key.failure("`\(name)` is not allowed here", hint: explanation)
                }
                guard allowed.contains(name) else {
                    throw key.failure(
                        "`\(name)` is not known here", hint: "allowed here: \(allowed.joined(separator: ", "))")
                }
                result[name] = value
            }
            return result
        }

        func string() throws -> String {
            guard case .scalar(let scalar) = node, !scalar.string.isEmpty else {
                throw failure("\(name) has to be a text")
            }
            return scalar.string
        }

        func bool() throws -> Bool {
            switch try string() {
            case "true": return true
            case "false": return false
            default: throw failure("\(name) has to be true or false")
            }
        }

        func integer(in range: ClosedRange<Int>) throws -> Int {
            guard let value = Int(try string()), range.contains(value) else {
                throw failure("\(name) has to be a number from \(range.lowerBound) to \(range.upperBound)")
            }
            return value
        }

        func duration() throws -> Duration {
            guard let value = Duration(text: try string()) else {
                throw failure("\(name) has to be a time such as 45s, 15m, 12h or 30d")
            }
            return value
        }

        func choice<Choice: RawRepresentable<String> & CaseIterable>(of type: Choice.Type) throws -> Choice {
            let text = try string()
            guard let choice = Choice(rawValue: text) else {
                let all = Choice.allCases.map(\.rawValue).joined(separator: ", ")
                throw failure("\(name) cannot be `\(text)`", hint: "allowed here: \(all)")
            }
            return choice
        }

        /// A column's value: a quoted text stays one, a plain word is what it looks like.
        func value() throws -> Value {
            guard case .scalar(let scalar) = node else { throw failure("\(name) has to be one value") }
            guard scalar.style == .plain else { return .text(scalar.string) }
            switch scalar.string {
            case "", "~", "null": return .null
            case "true", "false": throw failure("\(name) has to be a column's value", hint: "write 1 or 0")
            case let text:
                if let integer = Int64(text) { return .integer(integer) }
                if let real = Double(text), real.isFinite { return .real(real) }
                return .text(text)
            }
        }

        func strings() throws -> [String] {
            guard case .sequence(let sequence) = node else { throw failure("\(name) has to be a list, [a, b]") }
            return try sequence.map { try CheckedNode($0, path: path, name: name).string() }
        }
    }
#endif
