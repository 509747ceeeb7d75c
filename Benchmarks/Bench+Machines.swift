import Foundation
import GRDB
import Tidemark
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting

/// What it would add to a pull to read each record's state from the file, as an audit does (decision 14), against
/// applying its row.
extension Bench {
    private static let read = 10_000

    func machines() async throws {
        var pulled: [Double] = []
        var read: [Double] = []
        let count = min(rows, Self.read)
        for _ in 0..<Self.rounds {
            try await inDirectory { directory in
                let server = SyncServer(store: try SQLiteStore(path: directory.appending(path: "server.sqlite").path))
                let first = try device("a.sqlite", in: directory)
                let sender = try engine(first, server)
                try await sender.install()
                try Bench(rows: count).fill(first)
                _ = try await sender.syncNow()
                let second = try device("b.sqlite", in: directory)
                let receiver = try engine(second, server)
                pulled.append(try await seconds { _ = try await receiver.syncNow() })
                read.append(
                    try await seconds {
                        let found = try await second.read { db in try RecordMachines(db).all(db, rowLimit: count) }
                        precondition(found.machines.count == count)
                    })
            }
        }
        report("pull rows that nobody here has edited", count, median(pulled))
        report("read the state of each of their records", count, median(read))
    }
}
