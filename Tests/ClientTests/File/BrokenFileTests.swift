import GRDB
import Testing

@testable import Tidemark

@Suite("A file that cannot be used")
struct BrokenFileTests {
    @Test("Every call of the app's says so with the code, and without the statement")
    func closed() async throws {
        let device = try await Device("CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT)", tables: ["note"])
        let engine = try device.engine()
        try await engine.install()
        try device.writer.close()
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await engine.status() },
            { _ = try await engine.state(of: "note", id: "n1") },
            { _ = try await engine.conflicts() },
            { _ = try await engine.rejectedOperations() },
            { _ = try await engine.orphanedEdits() },
            { _ = try await engine.deletedRecords() },
            { _ = try await engine.canonicalID(of: "n1", in: "note") },
            { try await engine.syncNow() },
        ]
        for (index, call) in calls.enumerated() {
            let error = await #expect(throws: SyncError.self, "\(index)") { try await call() }
            #expect(error?.code == .databaseFailed)
            #expect(error?.description.contains("SELECT") == false)
        }
    }

    @Test(
        "An error tells SQLite's code, and neither its message nor its SQL",
        arguments: [
            (ResultCode.SQLITE_FULL, "database or disk is full", "room"),
            (.SQLITE_BUSY, "database is locked", "program"),
            (.SQLITE_CORRUPT, "malformed", "backup"),
            (.SQLITE_READONLY, "readonly", "written"),
            (.SQLITE_NOMEM, "out of memory", "log"),
        ])
    func told(code: ResultCode, what: String, remedy: String) {
        let error = SyncError(
            DatabaseError(resultCode: code, message: "secret", sql: "SELECT secret", arguments: ["secret"]))
        #expect(error.code == .databaseFailed)
        #expect(error.detail.contains(what) && error.hint.contains(remedy), "\(error)")
        #expect(!error.description.contains("secret"))
    }
}
