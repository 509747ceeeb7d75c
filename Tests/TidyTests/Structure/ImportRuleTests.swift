import Testing

@Suite("Imports")
struct ImportRuleTests {
    @Test("Imports point down only, and name only what is listed for the target")
    func imports() {
        expectNone(Repository.faults(in: ["Sources"], rule: ImportRule.faults))
    }

    @Test(
        "An import that points up, sideways or outside is found, and one that gives apps a whole module",
        arguments: [
            ("TidemarkWire", "import TidemarkCore"),
            ("TidemarkCore", "import Foundation"),
            ("TidemarkGzip", "import TidemarkWire"),
            ("Tidemark", "import TidemarkServer"),
            ("Tidemark", "public import Hummingbird"),
            ("TidemarkServer", "package import Tidemark"),
            ("TidemarkServer", "@preconcurrency import GRDB"),
            ("TidemarkSQLite", "@testable import TidemarkHummingbird"),
            ("TidemarkHummingbird", "import struct GRDB.Row"),
            ("TidemarkTesting", "import TidemarkCommand.Demo"),
            ("TidemarkAsyncHTTPClient", "@_spi(Testing) public import NIOPosix"),
            ("Tidemark", "@_exported public import TidemarkWire"),
        ])
    func plantedImport(target: String, line: String) {
        let text = "// why\n#if canImport(FoundationNetworking)\n    \(line)\n#endif\n"
        #expect(ImportRule.faults(path: "Sources/\(target)/A.swift", text: text).map(\.line) == [3])
    }

    @Test("A target that nobody listed is found")
    func plantedTarget() {
        #expect(ImportRule.faults(path: "Sources/TidemarkNowhere/A.swift", text: "").count == 1)
    }

    @Test(
        "Imports that are listed pass",
        arguments: [
            ("TidemarkWire", "#if canImport(FoundationEssentials)\nimport FoundationEssentials\n#endif"),
            ("TidemarkServer", "#else\n    import Foundation\n#endif"),
            ("TidemarkServer", "@_exported public import TidemarkWire"),
            ("Tidemark", "@_exported public import struct TidemarkWire.Scope"),
            ("Tidemark", "public import GRDB\npackage import TidemarkCore\nimport class Foundation.URLSession"),
            ("TidemarkCommand", "import ArgumentParser\nimport TidemarkTesting\nimport GRDB\nimport Glibc"),
            ("TidemarkCore", "// import Foundation\nlet a = \"\"\"\nimport Foundation\n\"\"\""),
        ])
    func clean(target: String, text: String) {
        #expect(ImportRule.faults(path: "Sources/\(target)/A.swift", text: text).isEmpty)
    }
}
