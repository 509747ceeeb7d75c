/// Which files of a target name types that another one of its files declares.
struct TypeNames {
    struct Use: Hashable {
        var path: String
        var line: Int
        var name: String
        /// The file that declares it.
        var home: String
    }

    let paths: [String]
    /// Each name once for each file that uses it.
    let uses: [Use]

    private static let kinds: Set = ["struct", "class", "enum", "actor", "protocol", "typealias"]

    init(files: [Repository.File], in target: String) {
        let files = files.filter { $0.path.hasPrefix(target) && $0.path.hasSuffix(".swift") }
        let texts = files.map { (path: $0.path, tokens: SwiftText($0.text).tokens) }
        var homes: [String: Set<String>] = [:]
        var nested: [String: Set<String>] = [:]
        for (path, tokens) in texts {
            let declared = Self.declared(in: tokens)
            for name in declared.top { homes[name, default: []].insert(path) }
            for (type, names) in declared.nested { nested[type, default: []].formUnion(names) }
        }
        paths = files.map(\.path)
        uses = texts.flatMap { Self.uses(path: $0.path, tokens: $0.tokens, homes: homes, nested: nested) }
    }

    /// A nested type hides another file's of the same name, also where its own type is extended.
    private static func uses(
        path: String, tokens: [SwiftText.Token], homes: [String: Set<String>], nested: [String: Set<String>]
    ) -> [Use] {
        var told: Set<String> = []
        let own = declared(in: tokens)
        var hidden = Set(own.nested.values.joined())
        for (index, token) in tokens.enumerated() where token.text == "extension" && index + 1 < tokens.count {
            hidden.formUnion(nested[tokens[index + 1].text] ?? [])
        }
        return tokens.indices.compactMap { index in
            let name = tokens[index].text
            guard !hidden.contains(name), index == 0 || tokens[index - 1].text != ".", let homes = homes[name],
                homes.count == 1, let home = homes.first, home != path, told.insert(name).inserted
            else { return nil }
            return Use(path: path, line: tokens[index].line, name: name, home: home)
        }
    }

    /// The types that a file declares: those at its top, and by the outermost type or extension the others.
    private static func declared(in tokens: [SwiftText.Token]) -> (top: Set<String>, nested: [String: Set<String>]) {
        var top: Set<String> = []
        var nested: [String: Set<String>] = [:]
        var (depth, outer, next) = (0, "", "")
        for (index, token) in tokens.enumerated() {
            switch token.text {
            case "{":
                if depth == 0 { outer = next }
                depth += 1
            case "}": depth -= 1
            case "extension" where index + 1 < tokens.count && depth == 0: next = tokens[index + 1].text
            case _ where kinds.contains(token.text) && index + 1 < tokens.count:
                // `import struct Module.Name` declares nothing.
                guard index == 0 || tokens[index - 1].text != "import" else { continue }
                let name = tokens[index + 1].text
                if depth == 0 {
                    top.insert(name)
                    next = name
                } else {
                    nested[outer, default: []].insert(name)
                }
            default: break
            }
        }
        return (top, nested)
    }
}
