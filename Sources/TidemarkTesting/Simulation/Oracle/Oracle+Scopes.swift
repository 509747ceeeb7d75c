import TidemarkCore
import TidemarkServer
import TidemarkWire

// How far a device is with each scope, and what it has of one that was taken away.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    func checkScopes(_ device: Int, since former: OracleDevice.Sight) throws {
        let sight = devices[device].sight
        for (scope, standing) in sight.scopes {
            // With a scope go the lists of what was resolved in it.
            if standing.isLost { verdicts.told[device] = nil }
            if standing.isLost, former.scopes[scope]?.isLost != true { try checkGone(device, scope, sight) }
            guard let before = former.scopes[scope], before.epoch == standing.epoch, scopes[scope]?.newest == 0
            else { continue }
            if let last = before.complete, let complete = standing.complete, complete < last {
                throw Violation("I2", "device \(device): \(scope) goes back from \(last) to \(complete)")
            }
            if let complete = standing.complete, complete != before.complete,
                let group = verdicts.groups[scope]?.first(where: { $0.contains(complete) && $0.upperBound != complete })
            {
                throw Violation(
                    "T28",
                    "device \(device): \(scope) is whole at \(complete), within the group of \(group)")
            }
            if let last = position(before, scope), let position = position(standing, scope), position < last {
                throw Violation("I2", "device \(device): the checkpoint of \(scope) goes from \(last) to \(position)")
            }
        }
    }

    private func position(_ standing: OracleDevice.Standing, _ scope: Scope) -> Version? {
        standing.checkpoint.flatMap { token in
            try? Checkpoint(token: token, scope: scope, key: world.server.store.tokenKey).position
        }
    }

    /// With the access go the rows, but for what was written since (I9).
    private func checkGone(_ device: Int, _ scope: Scope, _ sight: OracleDevice.Sight) throws {
        for (key, cells) in sight.rows where sight.shadows[key] == nil {
            guard let table = tables[key.entity], table.scopes(of: cells) == [scope] else { continue }
            throw Violation("I9", "device \(device) has lost \(scope), and still has \(key): \(text(cells))")
        }
    }
}
