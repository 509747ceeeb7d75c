public import Foundation
import TidemarkCore
import TidemarkWire

/// The history that one pass over a store has removed, or would.
public struct Compaction: Hashable, Sendable {
    /// Rows that newer ones had replaced; `nil` where that was only rehearsed.
    public var superseded: Int?
    /// Deletions, and events where they go too, that are older than the retention window and that every known device
    /// has.
    public var expired = 0
    /// Devices that were not heard of for too long.
    public var devices = 0
    /// Lanes of devices that are not known any more, not used for ``SyncServer/Configuration/laneRetention``.
    public var lanes = 0
    /// Blobs that no record names, and that nobody sent or asked for lately (A12).
    public var blobs = 0
    /// Their bytes.
    public var blobBytes: Int64 = 0
    /// Uploads that nobody has gone on with for a day.
    public var parts = 0
    /// The present moment for all of it: not later than the clock of ages allows.
    public var present = Date(timeIntervalSince1970: 0)
    /// The wall clock.
    public var wall = Date(timeIntervalSince1970: 0)

    /// Nothing.
    public init() {}
}

extension Compaction: CustomStringConvertible {
    /// A sentence for a log: `Of no more use: 3 replaced rows, 1 expired change.`
    public var description: String {
        let counts: [(Int, String)] = [
            (superseded ?? 0, "replaced row"), (expired, "expired change"), (devices, "device"), (lanes, "lane"),
            (blobs, "blob"), (parts, "unfinished upload"),
        ]
        let found = counts.filter { $0.0 > 0 }.map { counted($0.0, $0.1) }
        return "Of no more use: \(found.isEmpty ? "nothing" : found.joined(separator: ", "))."
    }
}

extension SyncServer {
    /// Scopes that are looked at between two questions for more of them.
    private static let scopeBatch = 256

    /// Lets go of what no device needs any more, in small steps: replaced rows, and, behind the retention window and
    /// the checkpoints of all known devices, deletions, and events if they are to go with them
    /// (``Configuration/expiresEvents``). Devices that were away for too long are forgotten. Blobs that no record has
    /// named, and nobody has sent or asked for, for as long as deletions are kept and seven days at least go, where
    /// attachments are declared; a scope's names are looked at once a day.
    ///
    /// ``sweepContinuously()`` does this by itself. A clock that has jumped ahead makes nothing old but uploads that
    /// are not finished: history ages by a clock of its own, which is kept in the store and follows the wall clock at
    /// most at twice the speed of the time that passes while a server runs, and blobs age with it.
    ///
    /// - Parameters:
    ///   - elapsed: how long ago the last pass was, by a clock that nobody sets; zero where that is not known.
    ///   - trustingClock: take the wall clock at its word.
    ///   - isRehearsal: only count.
    /// - Throws: what the store throws: ``StoreUnavailable`` for what passes by itself.
    @discardableResult
    public func compact(
        elapsed: Duration = .zero, trustingClock: Bool = false, isRehearsal: Bool = false
    ) async throws -> Compaction {
        var compaction = Compaction()
        let wall = configuration.moment()
        let present = try await present(
            at: wall, elapsed: trustingClock ? nil : elapsed.milliseconds, isRehearsal: isRehearsal)
        (compaction.wall, compaction.present) = (Date(milliseconds: wall), Date(milliseconds: present))
        if !isRehearsal {
            var rows = try await sweep()
            var last = rows
            while last == configuration.sweepLimit {
                last = try await sweep()
                rows += last
            }
            compaction.superseded = rows
        }
        var last: Scope?
        while true {
            let scopes = try await store.scopes(after: last, limit: Self.scopeBatch)
            for scope in scopes { try await compact(scope, at: present, &compaction, isRehearsal: isRehearsal) }
            guard scopes.count == Self.scopeBatch else { break }
            last = scopes.last
        }
        try await collectBlobs(at: present, wall: wall, &compaction, isRehearsal: isRehearsal)
        return compaction
    }

    /// - Parameter elapsed: `nil` to take the wall clock at its word.
    private func present(at wall: Int64, elapsed: Int64?, isRehearsal: Bool) async throws -> Int64 {
        let kept = try await store.ageClock()
        let reading = elapsed.map { AgeClock.moved(kept, to: wall, elapsed: $0) } ?? wall
        if !isRehearsal, reading != kept { try await store.setAgeClock(reading) }
        return AgeClock.present(reading, wall: wall)
    }

    private func compact(
        _ scope: Scope, at present: Int64, _ compaction: inout Compaction, isRehearsal: Bool
    ) async throws {
        let due = Due(configuration, at: present)
        let limit = configuration.sweepLimit
        // The rest of an erased scope is not counted any more, and goes with `erase`.
        let found = try await store.read(scope) { reader in
            reader.state.erasedAt == nil
                ? try reader.unheard(devicesBefore: due.devices, lanesBefore: due.lanes) : nil
        }
        guard let unheard = found else { return }
        if isRehearsal {
            compaction.devices += unheard.devices
            compaction.lanes += unheard.lanes
        } else if unheard != (0, 0) {
            var gone: (devices: Int, lanes: Int)
            repeat {
                gone = try await store.write(scope) {
                    try $0.forget(devicesBefore: due.devices, lanesBefore: due.lanes, limit: limit)
                }
                compaction.devices += gone.devices
                compaction.lanes += gone.lanes
            } while max(gone.devices, gone.lanes) == limit
        }
        guard let moment = due.history else { return }
        let events = configuration.expiresEvents
        var from: Version?
        while true {
            try Task.checkCancellation()
            let start = from
            // First as a reader: most scopes have nothing that is old, and need no writer.
            let step = try await store.read(scope) {
                try Step($0, from: start, before: moment, events: events, limit: limit)
            }
            guard step.floor > step.start else { return }
            compaction.expired += step.rows
            from = step.floor
            guard !isRehearsal else { continue }
            try await store.write(scope) { writer in
                let step = try Step(writer, from: start, before: moment, events: events, limit: limit)
                if step.floor > writer.state.retentionFloor { try writer.expire(through: step.floor, events: events) }
            }
        }
    }
}

/// The moments before which things are old.
private struct Due: Sendable {
    /// `nil`: history is kept for ever.
    var history: Int64?
    var devices: Int64
    var lanes: Int64

    init(_ configuration: SyncServer.Configuration, at present: Int64) {
        // A scan in progress may still need what the window holds.
        history = configuration.retention.map { Self.moment(max($0, configuration.window), before: present) }
        devices = Self.moment(configuration.deviceRetention, before: present)
        lanes = Self.moment(max(configuration.laneRetention, configuration.deviceRetention), before: present)
    }

    private static func moment(_ duration: Duration, before present: Int64) -> Int64 {
        present.saturatingSubtracting(duration.milliseconds)
    }
}

/// A step of the retention floor, up to rows that are not old yet or that a known device has not got.
private struct Step: Sendable {
    let start: Version
    let floor: Version
    let rows: Int

    init(_ reader: any ScopeReader, from: Version?, before moment: Int64, events: Bool, limit: Int) throws {
        start = from ?? reader.state.retentionFloor
        let last = try reader.slowest() ?? reader.state.head
        (floor, rows) = try reader.aged(after: start, through: last, before: moment, events: events, limit: limit)
    }
}
