import Foundation
import Testing
import Tidemark

@Suite("The page of failures and the codes of errors")
struct ErrorPageTests {
    private static let page = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Documentation/Failures.md")

    @Test("each error that wants the app has a row, and no row names a code that is not there")
    func rows() throws {
        let page = try String(contentsOf: Self.page, encoding: .utf8)
        let section = try #require(page.split(separator: "\n## ").first { $0.hasPrefix("What needs you") })
        let named = Set(section.matches(of: /(?m)^\| `([a-z_]+)` \|/).map { String($0.1) })
        let wanting = SyncError.Code.all.filter { SyncError($0, "").recovery == .needsApp }
        #expect(wanting.filter { !named.contains($0.rawValue) }.isEmpty)
        #expect(named.subtracting(SyncError.Code.all.map(\.rawValue)).isEmpty)
    }
}
