import Testing

@Suite("The index of the programs in Python")
struct BlackBoxIndexTests {
    @Test("The page of Tests/BlackBox names each of its programs")
    func named() throws {
        let folder = "Tests/BlackBox/"
        let page = try #require(Repository.files.first { $0.path == folder + "README.md" })
        // What makes a folder a package is no program.
        let programs = Repository.files.filter {
            $0.path.hasPrefix(folder) && $0.path.hasSuffix(".py") && !$0.path.hasSuffix("/__init__.py")
        }
        #expect(programs.count > 50)
        expectNone(
            programs.filter { !page.text.contains("`\($0.path.dropFirst(folder.count))`") }.map {
                Fault(path: $0.path, line: 1, message: "is not in \(page.path)")
            })
    }
}
