import Foundation
import GRDB
import Testing
import TidemarkServer

@testable import TidemarkSQLite

@Suite("A store that somebody else has locked says so")
struct LockedStoreTests {
    @Test("Everything that writes is unavailable, and goes on when the lock is gone", .timeLimit(.minutes(5)))
    func locked() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "sync.sqlite").path
        let store = try SQLiteStore(path: path) { db in try db.execute(sql: "PRAGMA busy_timeout = 1") }
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: path, configuration: configuration)
        try await other.writeWithoutTransaction { db in try db.beginTransaction(.immediate) }
        await #expect(throws: StoreUnavailable.self) { try await store.setAgeClock(1) }
        await #expect(throws: StoreUnavailable.self) { try await store.discardRejection(1) }
        await #expect(throws: StoreUnavailable.self) { try await store.sweep(supersededBefore: 1, limit: 1) }
        await #expect(throws: StoreUnavailable.self) { try await store.write("s") { $0.state.head } }
        #expect(try await store.ageClock() == nil)
        try await other.writeWithoutTransaction { db in try db.rollback() }
        try await store.setAgeClock(1)
        #expect(try await store.ageClock() == 1)
        try store.close()
    }
}
