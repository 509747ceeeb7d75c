import GRDB
import TidemarkCore
import TidemarkServer
import TidemarkWire

// The server's rows as devices have them, without edits under way: each is what the log said at some version at or
// above the device's checkpoint, and that version never falls (I2, I3, I6).
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// A scope that was taken away begins anew on the device.
    func noteLoss(_ device: Int, _ db: Database, since former: OracleDevice.Sight) throws {
        for (scope, standing) in devices[device].sight.scopes {
            if standing.isLost, former.scopes[scope]?.isLost != true { try noteOrphaned(device, db) }
            let had = former.scopes[scope]?.complete != nil
            guard standing.isLost || had && standing.complete == nil else { continue }
            devices[device].bounds[scope] = nil
            devices[device].forgetLogged(in: scope)
        }
    }

    /// An edit whose answer was lost together with its scope is made anew when the scope comes back, whether the server
    /// had taken it or not (Documentation/Reliability.md, Known).
    private func noteOrphaned(_ device: Int, _ db: Database) throws {
        var orphaned: Set<OracleKey> = []
        try OracleDevice.Sight.each(db, "SELECT entity, record FROM tidemark_orphan") {
            orphaned.insert(names[OracleKey(entity: $0[0], record: $0[1])])
        }
        for cell in devices[device].written where orphaned.contains(cell.key) { allowed[cell, default: 0] += 1 }
    }

    func noteFilled(_ device: Int, since former: OracleDevice.Sight) {
        for (entity, places) in former.unfilled {
            let left = devices[device].sight.unfilled[entity] ?? []
            let places = places.filter { !left.contains($0) }
            guard !places.isEmpty else { continue }
            for (scope, histories) in scopes {
                let known = devices[device].filled[scope]?[entity]?.places ?? []
                devices[device].filled[scope, default: [:]][entity] = OracleDevice.Filled(
                    places: known + places, history: histories.newest, head: histories.current.head)
            }
        }
    }

    /// The row without what it shows of later versions than the rest of it.
    private func withoutFilled(
        _ device: Int, _ key: OracleKey, _ base: [Value]?, _ scope: Scope, _ histories: OracleScope, complete: Version
    ) -> [Value]? {
        guard var cells = base, let filled = devices[device].filled[scope]?[key.entity],
            filled.history == histories.newest, complete < filled.head
        else { return base }
        for index in filled.places { cells[index] = .absent }
        return cells
    }

    func checkRows(_ device: Int) throws {
        let sight = devices[device].sight
        devices[device].unfounded.formIntersection(Set(sight.shadows.keys).union(sight.quarantined))
        let passed = sight.quarantined.union(devices[device].unfounded).union(sight.refetch).union(sight.inferred)
        for (scope, histories) in scopes {
            guard let standing = sight.scopes[scope] else { continue }
            var keys = Set(sight.rows.keys).union(sight.shadows.keys)
            if let bounds = devices[device].bounds[scope] { keys.formUnion(bounds.keys) }
            keys.formUnion(histories.current.versions.keys)
            for key in keys {
                guard let table = tables[key.entity], table.scopes.contains(scope), !passed.contains(key),
                    !isUnnamed(table), !sight.missing.contains(key.entity)
                else { continue }
                let base = sight.base(key)
                guard table.scopes(of: base).contains(scope) else { continue }
                // Made here: the row that came from one of several scopes made way for it.
                if table.place != nil, sight.rows[key] != nil, sight.shadows[key] == .some(nil) { continue }
                try checkRow(device, key, base, scope, histories, standing)
            }
        }
    }

    private func checkRow(
        _ device: Int, _ key: OracleKey, _ base: [Value]?, _ scope: Scope, _ histories: OracleScope,
        _ standing: OracleDevice.Standing
    ) throws {
        if let bound = bound(device, key, base, scope, histories, standing) {
            devices[device].bounds[scope, default: [:]][key] = bound
            return
        }
        // Until it is filled anew, a row of a lost history lies under what the present one has taken of an edit.
        if histories.newest > 0, standing.isBootstrapping, isMixed(key, base, histories) { return }
        // Nobody tells which row was deleted unseen, where the server did not have it just then.
        if tables[key.entity]?.captureCount != nil, devices[device].sight.rows[key] == nil,
            base?.allSatisfy({ $0 == .null || $0 == .absent }) ?? false
        {
            return
        }
        // Nobody tells any more what stood in a column of a deleted record that a migration has resurrected.
        if tables[key.entity]?.captureCount != nil, histories.current.newest(key) == nil,
            isMixed(key, base, histories, mayLack: true)
        {
            return
        }
        let known = devices[device].bounds[scope]?[key] ?? OracleDevice.Bound()
        let history = histories.current
        let versions = (history.versions[key] ?? []).map { version in
            "\(version): \(text(history[version].cells))"
        }
        throw Violation(
            "I2",
            """
            device \(device): \(key) stands on \(text(base)), which it was at no version from \
            \(max(known.version, standing.complete ?? 0)) on (complete \(standing.complete ?? -1), seen \
            \(known.version) of history \(known.history)); the log has \(versions.joined(separator: ", "))
            """)
    }

    /// Whether each cell of a row is one that the record had in some history, or, with `mayLack`, is empty.
    private func isMixed(
        _ key: OracleKey, _ base: [Value]?, _ histories: OracleScope, mayLack: Bool = false
    ) -> Bool {
        guard let base else { return false }
        let rows = histories.histories.flatMap { history in
            (history.versions[key] ?? []).compactMap { history[$0].cells }
        }
        return base.indices.allSatisfy { index in
            let isEmpty = mayLack && (base[index] == .null || base[index] == .absent)
            return isEmpty || rows.contains { $0[index] == nil || $0[index] == base[index] }
        }
    }

    /// The lowest version that the record may stand at.
    ///
    /// - Parameter floor: it stands at or above this version of the present history.
    func bound(
        _ device: Int, _ key: OracleKey, _ base: [Value]?, _ scope: Scope, _ histories: OracleScope,
        _ standing: OracleDevice.Standing, floor: Version = 0
    ) -> OracleDevice.Bound? {
        let known = devices[device].bounds[scope]?[key] ?? OracleDevice.Bound()
        let complete = complete(standing, in: histories)
        let base = withoutFilled(device, key, base, scope, histories, complete: complete)
        let first = isPresent(standing, in: histories) ? histories.newest : known.history
        for history in first...histories.newest
        where histories.clip(floor, of: history, to: histories.newest) == floor {
            let lower = max(histories.clip(known.version, of: known.history, to: history), complete, floor)
            let version = histories.histories[history].first(key, from: lower) { $0.fits(base) }
            if let version { return OracleDevice.Bound(history: history, version: max(lower, version)) }
        }
        return nil
    }

    /// Up to where a device knows the present history of each scope.
    func completes(of sight: OracleDevice.Sight) -> [Scope: Version] {
        var completes: [Scope: Version] = [:]
        for (scope, standing) in sight.scopes {
            completes[scope] = scopes[scope].map { complete(standing, in: $0) }
        }
        return completes
    }

    private func complete(_ standing: OracleDevice.Standing, in histories: OracleScope) -> Version {
        let complete = standing.complete ?? 0
        return isPresent(standing, in: histories) ? complete : histories.clip(complete, of: 0, to: histories.newest)
    }

    /// After a loss a device has rows of both histories until it is filled anew.
    private func isPresent(_ standing: OracleDevice.Standing, in histories: OracleScope) -> Bool {
        let opening = standing.epoch.flatMap(Epoch.init(text:))?.id
        return histories.newest == 0 || !standing.isBootstrapping && (opening.map(histories.isOfPresent) ?? false)
    }

    func text(_ cells: [Value?]?) -> String {
        cells.map { "(" + $0.map { $0?.bare ?? "?" }.joined(separator: ", ") + ")" } ?? "nothing"
    }
}

extension OracleDevice {
    /// The device has nothing of the scope any more.
    mutating func forgetLogged(in scope: Scope) {
        forget { $0.logged.map { $0.scope == scope } ?? false }
    }

    /// Forgets which of this device's writes the log had above a version: they are gone, and it goes on from there.
    mutating func forgetLogged(in scope: Scope, above version: Version) {
        forget { $0.logged.map { $0.scope == scope && $0.version > version } ?? false }
        for (key, columns) in writes {
            for (column, write) in columns where write.logged == nil && write.after[scope, default: 0] > version {
                writes[key]?[column]?.after[scope] = version
            }
        }
    }

    private mutating func forget(_ isForgotten: (Write) -> Bool) {
        for (key, columns) in writes {
            for (column, write) in columns where isForgotten(write) { writes[key]?[column] = nil }
        }
    }
}
