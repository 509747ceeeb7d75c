import Testing

/// A type can be read without those that are built on it: types that lie beside one another do not name each other in
/// a circle. A type and its parts, `X.swift` and `X+Part.swift` in one folder, are one.
enum CycleRule {
    static let targets = [
        "Sources/Tidemark/", "Sources/TidemarkServer/", "Sources/TidemarkCore/", "Sources/TidemarkWire/",
    ]

    static func faults(files: [Repository.File], in target: String) -> [Fault] {
        let names = TypeNames(files: files, in: target)
        var edges: [String: Set<String>] = [:]
        for path in names.paths { edges[unit(of: path)] = [] }
        for use in names.uses where unit(of: use.path) != unit(of: use.home) {
            edges[unit(of: use.path)]?.insert(unit(of: use.home))
        }
        let circled = circled(edges)
        return names.uses.compactMap { use in
            let (from, to) = (unit(of: use.path), unit(of: use.home))
            guard from != to, let circle = circled[from], circle == circled[to] else { return nil }
            return Fault(
                path: use.path, line: use.line,
                message: "'\(use.name)' is of \(to), which names this file's types too, or by way of others")
        }
    }

    private static func unit(of path: String) -> String { String(path.dropLast(".swift".count).prefix { $0 != "+" }) }

    /// Returns each unit that lies on a circle, with the circle's number. Two units are on one circle where each can be
    /// reached from the other.
    private static func circled(_ edges: [String: Set<String>]) -> [String: Int] {
        var reached: [String: Set<String>] = [:]
        for start in edges.keys {
            var (seen, next): (Set<String>, [String]) = ([], [start])
            while let place = next.popLast() {
                for other in edges[place] ?? [] where seen.insert(other).inserted { next.append(other) }
            }
            reached[start] = seen
        }
        var circles: [String: Int] = [:]
        for start in edges.keys.sorted() where circles[start] == nil && reached[start]?.contains(start) == true {
            let number = circles.count
            for other in reached[start] ?? [] where reached[other]?.contains(start) == true { circles[other] = number }
        }
        return circles
    }
}

@Suite("Types that name each other")
struct CycleRuleTests {
    @Test("No types of the client, the server, the core or the wire do so in a circle", arguments: CycleRule.targets)
    func circles(target: String) { expectNone(CycleRule.faults(files: Repository.files, in: target)) }

    private func lines(_ texts: [String: String]) -> [String] {
        let files = texts.sorted { $0.key < $1.key }.map {
            Repository.File(path: "Sources/Tidemark/\($0.key)", text: $0.value)
        }
        return CycleRule.faults(files: files, in: "Sources/Tidemark/").map {
            "\($0.path.split(separator: "/").last ?? "") \($0.line)"
        }
    }

    @Test("A circle is found, also one by way of a third")
    func planted() {
        #expect(
            lines(["Store/A.swift": "struct A {}\nlet b: B", "Store/B.swift": "struct B { let a: A }"]) == [
                "A.swift 2", "B.swift 1",
            ])
        let third = [
            "Store/A.swift": "struct A { let b: B }", "Push/B.swift": "struct B { let c: C }",
            "Push/C.swift": "struct C { let a: A }",
        ]
        #expect(lines(third).count == 3)
        #expect(
            lines(["Store/A.swift": #"struct A { let b = "\(B.name)" }"#, "Store/B.swift": "enum B { var a: A }"]).count
                == 2)
    }

    @Test("Parts of one type, a way in one direction and a nested type of the same name are no circle")
    func none() {
        #expect(
            lines(["Store/A.swift": "struct A { let p: Part }", "Store/A+Part.swift": "struct Part { let a: A }"])
                .isEmpty)
        #expect(lines(["Store/A.swift": "struct A { let b: B }", "Store/B.swift": "struct B {}"]).isEmpty)
        let nested = [
            "Store/A.swift": "struct A { let b: B }", "Store/B.swift": "struct B { enum A {} }",
            "Push/B+More.swift": "extension B { func a() -> A {} }",
        ]
        #expect(lines(nested).isEmpty)
    }
}
