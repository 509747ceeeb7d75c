import GRDB
import Synchronization
import Testing
import TidemarkCore
import TidemarkTesting

@testable import Tidemark

/// Holds the records of a test's devices against their machine, as worlds are held, and wants the test to come to cells
/// that no world comes to. `Documentation/Machines.md` names the test for them.
struct RecordVisits: TestTrait, TestScoping {
    let cells: [String]

    /// One for all arguments of the test: each of them comes to some of the cells.
    func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? self : nil }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let audit = RecordAudit()
        audit.begin(test.displayName ?? test.name)
        try await Dependencies.$current.withValue(AuditedPlatform(audit)) { try await function() }
        let coverage = audit.coverage
        #expect(coverage.report == [])
        #expect(Set(cells).subtracting(coverage.visited).sorted() == [], "not come to")
    }
}

extension Trait where Self == RecordVisits {
    /// The records keep to their machine, and come to these cells and couplings.
    static func records(_ cells: String...) -> Self { RecordVisits(cells: cells) }
}

/// The platform, with an audit of what engines write.
private final class AuditedPlatform: TestClock {
    let platform = Platform()
    private let audit: RecordAudit
    /// One for each file. The file is kept, so that no other one takes its place here.
    private let watches = Mutex<[ObjectIdentifier: (writer: any DatabaseWriter, watch: RecordWatch)]>([:])

    init(_ audit: RecordAudit) { self.audit = audit }

    var wallClock: Int64 { platform.wallClock }
    var uptime: Instant { platform.uptime }
    func random() -> UInt64 { platform.random() }
    func sleep(for duration: Duration) async throws { try await platform.sleep(for: duration) }

    func use<Result: Sendable>(
        _ writer: any DatabaseWriter, _ access: FileAccess, at point: WritePoint?,
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        guard let point, access == .write else { return try await platform.use(writer, access, at: point, body) }
        let watch = watches.withLock { watches in
            let found = watches[ObjectIdentifier(writer)]?.watch ?? RecordWatch(audit)
            watches[ObjectIdentifier(writer)] = (writer, found)
            return found
        }
        return try await platform.use(writer, access, at: point) { db in try watch.around(db, at: point, body) }
    }
}
