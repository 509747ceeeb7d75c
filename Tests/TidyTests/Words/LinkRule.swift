import Testing

/// Links between the pages of this repository lead somewhere.
enum LinkRule {
    /// - Parameters:
    ///   - pages: the text of each Markdown file, by its path.
    ///   - others: the paths of all files.
    static func faults(pages: [String: String], others: Set<String>) -> [Fault] {
        var folders: Set<String> = []
        for path in others {
            var parts = path.split(separator: "/").dropLast()
            while !parts.isEmpty {
                folders.insert(parts.joined(separator: "/"))
                parts = parts.dropLast()
            }
        }
        let anchors = pages.mapValues(anchors)
        return pages.sorted { $0.key < $1.key }.flatMap { path, text in
            links(in: text).compactMap { line, link -> Fault? in
                let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                let target = parts[0].isEmpty ? path : resolve(String(parts[0]), from: path)
                guard others.contains(target) || folders.contains(target) else {
                    return Fault(path: path, line: line, message: "'\(link)' leads nowhere")
                }
                guard parts.count == 2, let known = anchors[target], !known.contains(String(parts[1])) else {
                    return nil
                }
                return Fault(path: path, line: line, message: "'\(link)' names no heading of \(target)")
            }
        }
    }

    private static func resolve(_ link: String, from path: String) -> String {
        var parts = path.split(separator: "/").dropLast().map(String.init)
        for part in link.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(String(part)) }
        }
        return parts.joined(separator: "/")
    }

    /// Lines outside of code.
    private static func prose(_ text: String) -> [(line: Int, text: Substring)] {
        var isCode = false
        return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { place, line in
            if line.drop(while: { $0 == " " }).hasPrefix("```") {
                isCode.toggle()
                return nil
            }
            return isCode ? nil : (place + 1, line)
        }
    }

    private static func links(in text: String) -> [(line: Int, link: String)] {
        prose(text).flatMap { line, text in
            text.matches(of: /\]\(([^)\s]+)\)/).map { (line, String($0.1)) }
                .filter { !$0.1.contains(":") }
        }
    }

    /// Headings as they are linked to: in small letters, with hyphens for spaces, and without signs.
    private static func anchors(_ text: String) -> Set<String> {
        Set(
            prose(text).filter { $0.text.hasPrefix("#") }.map { _, line in
                String(
                    line.drop { $0 == "#" }.dropFirst().lowercased().compactMap { letter -> Character? in
                        if letter == " " { return "-" }
                        return letter.isLetter || letter.isNumber || letter == "-" || letter == "_" ? letter : nil
                    })
            })
    }
}

@Suite("Pages link to what is there")
struct LinkRuleTests {
    @Test("Each relative link names a file or a folder, and a heading where it names one")
    func links() {
        let pages = Repository.files.filter { $0.path.hasSuffix(".md") && !$0.path.contains(".docc/") }
        #expect(pages.count > 20)
        expectNone(
            LinkRule.faults(
                pages: Dictionary(uniqueKeysWithValues: pages.map { ($0.path, $0.text) }),
                others: Set(Repository.files.map(\.path))))
    }

    @Test("A link that leads nowhere is found")
    func broken() {
        let text = "[a](b.md) [a](../c) [a](d/b.md#x-y)\n[a](#none) [a](https://e.org) [b](d)\n```\n[a](n.md)\n```"
        let faults = LinkRule.faults(
            pages: ["a.md": text, "d/b.md": "# X, y\n[u](../a.md) [v](../a.md#x)"], others: ["a.md", "d/b.md"])
        #expect(faults.map { "\($0.path):\($0.line)" } == ["a.md:1", "a.md:1", "a.md:2", "d/b.md:2"])
    }
}
