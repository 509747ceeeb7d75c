import GRDB
import Testing

@testable import Tidemark

@Suite("A file that cannot be used")
struct BrokenFileTests {
    @Test(
        "What SQLite says is told by its code alone",
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
