import Foundation
import Testing
import Tidemark
import TidemarkWire

@Suite("The page of failures and the codes of errors")
struct ErrorPageTests {
    private static let top = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    @Test("each error that wants the app has a row, and no row names a code that is not there")
    func rows() throws {
        let page = try String(contentsOf: Self.top.appending(path: "Documentation/Failures.md"), encoding: .utf8)
        let section = try #require(page.split(separator: "\n## ").first { $0.hasPrefix("What needs you") })
        let named = Set(section.matches(of: /(?m)^\| `([a-z_]+)` \|/).map { String($0.1) })
        let wanting = SyncError.Code.all.filter { SyncError($0, "").recovery == .needsApp }
        #expect(wanting.filter { !named.contains($0.rawValue) }.isEmpty)
        #expect(named.subtracting(SyncError.Code.all.map(\.rawValue)).isEmpty)
    }

    @Test("each code that is declared stands in the list of all, of errors and of refusals")
    func lists() throws {
        let errors = try declared(
            in: "Sources/Tidemark/Runtime/SyncError.swift", /static let \w+ = Code\("([a-z_]+)"\)/)
        #expect(errors.count > 20 && errors == Set(SyncError.Code.all.map(\.rawValue)))
        let refusals = try declared(in: "Sources/TidemarkWire/Verdict.swift", /static let \w+ = "([a-z_]+)"/)
        #expect(refusals.count > 20 && refusals.union(["conflict"]) == RejectionCode.all)
    }

    @Test("the protocol names each code of a refusal")
    func protocolNames() throws {
        let page = try String(contentsOf: Self.top.appending(path: "Documentation/Protocol.md"), encoding: .utf8)
        let section = try #require(page.split(separator: "\n\n").first { $0.hasPrefix("Rejection codes: ") })
        #expect(RejectionCode.all.filter { $0 != "conflict" && !section.contains("`\($0)`") } == [])
    }

    private func declared(in path: String, _ pattern: Regex<(Substring, Substring)>) throws -> Set<String> {
        let source = try String(contentsOf: Self.top.appending(path: path), encoding: .utf8)
        return Set(source.matches(of: pattern).map { String($0.1) })
    }
}
