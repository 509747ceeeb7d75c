import Foundation

@testable import TidemarkServer
@testable import TidemarkWire

/// What ends the window of a scope.
enum WindowEnd: CaseIterable { case time, bytes }

extension Bench {
    /// Closes the store, keeps a copy of its file, and opens it again.
    func copyStore() throws {
        try reopen { file in
            try? FileManager.default.removeItem(at: directory.appending(path: "copy.sqlite"))
            try FileManager.default.copyItem(at: file, to: directory.appending(path: "copy.sqlite"))
        }
    }

    /// Puts the copy in the place of the store.
    func restoreStore() throws {
        try reopen { file in
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file.path + suffix) }
            try FileManager.default.copyItem(at: directory.appending(path: "copy.sqlite"), to: file)
        }
    }

    /// Lets go of all that is superseded in the scope.
    func endWindow(_ end: WindowEnd) async throws {
        switch end {
        case .time:
            clock += 3_600_000
            while try await server.sweep() > 0 {}
        case .bytes:
            var limits = Limits()
            limits.windowBytes = 1
            try await SyncServer(store: store, entities: entities, limits: limits, configuration: .still).commit(
                to: "s"
            ) { _ in }
        }
    }

    /// What stands in the scope, record by record.
    func contents(_ scope: Scope = "s") async throws -> [String: NSDictionary] {
        let changes = try await pullAll(scope: scope).changes.filter { $0.type != "delete" }
        return Dictionary(changes.compactMap { change in change.data.map { (change.id, $0) } }) { $1 }
    }
}
