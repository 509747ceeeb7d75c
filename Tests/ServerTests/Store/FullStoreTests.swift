import Foundation
import GRDB
import Testing
import TidemarkServer

@testable import TidemarkSQLite

@Suite("A store without room says so, and keeps what it has")
struct FullStoreTests {
    @Test("Writes are unavailable, reads go on, and what was acknowledged is there, as it was", .timeLimit(.minutes(5)))
    func full() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "sync.sqlite").path
        let store = try SQLiteStore(path: path) { db in try db.execute(sql: "PRAGMA max_page_count = 150") }
        let server = SyncServer(store: store, configuration: .still)
        let text = String(repeating: "x", count: 50_000)
        // Several at once, so that one commit holds more than one of them.
        let taken = await withTaskGroup(of: Result<String, any Error>.self) { group in
            for index in 0..<40 {
                group.addTask {
                    do {
                        try await server.commit(to: "s") {
                            $0.upsert("task", id: .init(stringLiteral: "r\(index)"), ["text": .text(text)])
                        }
                        return .success("r\(index)")
                    } catch { return .failure(error) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let acknowledged = taken.compactMap { try? $0.get() }
        for case .failure(let error) in taken { #expect(error is StoreUnavailable, "\(error)") }
        #expect(acknowledged.count < 40)
        await #expect(throws: StoreUnavailable.self) {
            for index in 40..<60 {
                try await server.commit(to: "s") {
                    $0.upsert("task", id: .init(stringLiteral: "r\(index)"), ["text": .text(text)])
                }
            }
        }
        let query = SnapshotQuery(of: "s")
        let page = try await server.snapshot(query, access: .read(as: "ada"))
        let answer = try Answer(page.body)
        #expect(Set(acknowledged).isSubset(of: Set(answer.changes.map(\.id))))
        try store.close()
        // Once there is room, it goes on.
        let roomy = SyncServer(store: try SQLiteStore(path: path), configuration: .still)
        try await roomy.commit(to: "s") { $0.upsert("task", id: "last", ["text": .text(text)]) }
    }

    @Test(
        "A blob that finds no room in the database is refused, leaves the others, and begins once there is some",
        .timeLimit(.minutes(5)))
    func fullForBlobs() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "sync.sqlite").path
        var store = try SQLiteStore(path: path) { db in try db.execute(sql: "PRAGMA max_page_count = 150") }
        let server = SyncServer(store: store, configuration: .still)
        let text = String(repeating: "x", count: 50_000)
        await #expect(throws: StoreUnavailable.self) {
            for index in 0..<60 {
                try await server.commit(to: "s") {
                    $0.upsert("task", id: .init(stringLiteral: "r\(index)"), ["text": .text(text)])
                }
            }
        }
        func name(_ number: Int) -> BlobPartName {
            BlobPartName(scope: "s", principal: "u\(number)", hash: String(repeating: "a", count: 64))
        }
        let room = BlobRoom(scope: 1 << 30, caller: 1 << 30, parts: 9)
        var begun: [BlobPart] = []
        var refusal: (any Error)?
        while refusal == nil, begun.count < 5000 {
            do {
                begun.append(try await store.begin(name(begun.count), size: 3, within: room, at: 1))
            } catch { refusal = error }
        }
        #expect(refusal is StoreUnavailable, "\(String(describing: refusal))")
        #expect(try await store.part(name(begun.count)) == nil)
        try store.close()

        store = try SQLiteStore(path: path)
        for part in begun { #expect(try await store.part(part.name) == part) }
        var part = try await store.begin(name(begun.count), size: 3, within: room, at: 2)
        part = try await store.append([1, 2, 3], to: part, isLast: true, at: 2)
        #expect(try await store.finish(part, at: 2))
        try await store.tidyBlobs(of: "s")
        let all = FileManager.default.enumerator(
            at: directory.appending(path: "sync.sqlite-blobs"), includingPropertiesForKeys: nil)
        let parts = all?.allObjects.compactMap { $0 as? URL }.filter { Int64($0.lastPathComponent) != nil }
        #expect(parts?.count == begun.count)
        try store.close()
    }
}
