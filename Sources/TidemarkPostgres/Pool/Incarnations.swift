import TidemarkServer

/// The random ids of this opening of the store, one for each run of the server: versions that are assigned on one side
/// of a restart, a restored backup or a change of servers are told apart from those on the other (Protocol.md).
final class Incarnations: Sendable {
    private let ids = Guarded<[ServerRun: Int64]>([:])
    private let first: Int64

    /// - Parameter first: the id in the run that is met first.
    init(first: Int64) { self.first = first }

    func id(in run: ServerRun) -> Int64 {
        ids.withLock { ids in
            if let id = ids[run] { return id }
            let id = ids.isEmpty ? first : Int64.random(in: 1...Int64.max)
            ids[run] = id
            return id
        }
    }
}
