import TidemarkCore
import TidemarkWire

/// How a store finds out that it has lost what its readers have seen, and what it tells them then (I11, T19).
struct LostHistory {
    /// Lanes that an answer names; a device that has opened its file more often has long since done with the others.
    static let laneLimit = 1000

    let reader: any ScopeReader
    let device: DeviceName?
    private let history: ScopeHistory

    init(_ reader: any ScopeReader, of device: DeviceName?) {
        self.reader = reader
        self.device = device
        history = reader.state.history
    }

    /// Takes up the scan of a checkpoint, or says why not.
    func resume(_ checkpoint: Checkpoint) throws -> Checkpoint {
        do throws(Problem) { return try checkpoint.resumed(in: history) } catch { throw try told(error) }
    }

    /// Looks at a push before anything of it is applied, and before gaps, which a lost history has too.
    func check(_ request: ExchangeRequest, since checkpoint: Checkpoint?) throws {
        if let checkpoint { _ = try resume(checkpoint) }
        // Its verdicts up to there were on this store's disk once.
        for (lane, number) in request.acked where try mark(lane) < number {
            throw try lost(
                "Lane \(lane) had come to \(number), which this store does not know of.", request, checkpoint)
        }
        var ends: [String: Version] = [:]
        for sealed in request.operations {
            // A replayed edit names a lost history, and what it repeats was taken already.
            guard sealed.operation.original == nil, let name = sealed.operation.epoch else { continue }
            let end = ends[name] ?? history.end(of: name)
            ends[name] = end
            guard sealed.operation.newestBase > end, try mark(sealed.key.lane) < sealed.key.number else { continue }
            throw try lost(
                "Operation \(sealed.key.number) was made on a state that this history does not have.", request,
                checkpoint)
        }
    }

    private func mark(_ lane: String) throws -> Int64 { try device.map { try reader.lane($0.lane(lane)) } ?? 0 }

    private func lost(
        _ detail: String, _ request: ExchangeRequest, _ checkpoint: Checkpoint?
    ) throws -> Problem {
        let names = Set(request.operations.compactMap { $0.operation.original == nil ? $0.operation.epoch : nil })
        let epochs = names.compactMap { Epoch(text: $0) } + (checkpoint.map { [$0.epoch] } ?? [])
        let survived = epochs.map { history.shared(with: $0) }.min() ?? 0
        return try told(history.expired(.epoch, detail, survived: survived))
    }

    /// A 410 that also names the device's lanes.
    func told(_ problem: Problem) throws -> Problem {
        guard problem.reason != nil, let device else { return problem }
        var problem = problem
        // The store keeps deletions for a known device; one without a standing has been away for too long.
        if problem.reason == .retention, try reader.standing(of: device) == nil { problem.code = .clientUnknown }
        let lanes = try reader.lanes(of: device, limit: Self.laneLimit)
        problem.lanes = Dictionary(lanes.map { ($0.lane, $0.number) }) { first, _ in first }
        return problem
    }
}

extension ScopeHistory {
    /// The last version of the history of that name; below all versions where it is none of this store's.
    fileprivate func end(of name: String) -> Version {
        guard let epoch = Epoch(text: name), knows(epoch) else { return -1 }
        return shared(with: epoch)
    }
}

extension Operation {
    /// The newest version that the edit was made on.
    fileprivate var newestBase: Version { max(baseVersion ?? 0, fieldBases.newest ?? 0) }
}
