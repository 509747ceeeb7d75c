import Foundation

@testable import TidemarkServer
@testable import TidemarkWire

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

    /// What stands in the scope, record by record.
    func contents(_ scope: Scope = "s") async throws -> [String: NSDictionary] {
        let changes = try await pullAll(scope: scope).changes.filter { $0.type != "delete" }
        return Dictionary(changes.compactMap { change in change.data.map { (change.id, $0) } }) { $1 }
    }
}
