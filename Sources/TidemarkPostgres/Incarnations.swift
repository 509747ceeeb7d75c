import Foundation

/// The random ids of this opening of the store, one for each run of the server: versions that are assigned on one side
/// of a restart, a restored backup or a change of servers are told apart from those on the other (PROTOCOL.md 3).
final class Incarnations: @unchecked Sendable {  // because what changes is only touched under `lock`
    private let lock = NSLock()
    private var ids: [ServerRun: Int64] = [:]

    func id(in run: ServerRun) -> Int64 {
        lock.withLock {
            if let id = ids[run] { return id }
            let id = Int64.random(in: 1...Int64.max)
            ids[run] = id
            return id
        }
    }
}
