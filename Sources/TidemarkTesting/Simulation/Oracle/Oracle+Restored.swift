import GRDB
import TidemarkServer
import TidemarkWire

// A server that is put back to an earlier state is given again what it had (I11).
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// At the end: what each history had lost is replayed by the devices.
    func checkReplayed(_ scope: Scope) throws {
        guard let histories = scopes[scope], histories.newest > 0 else { return }
        for index in 0..<histories.newest {
            let (lost, fork) = (histories.histories[index], histories.forks[index])
            let shared = lost.prefix(through: fork)
            // It may have been replayed before the next loss, of which it is no part then.
            let begin = histories.forks[index...].min() ?? fork
            for key in lost.versions.keys.sorted()
            where !isLost(key) && !verdicts.tooLarge.contains(key) {
                // Devices keep what they have finished for a week.
                guard let version = lost.versions[key]?.last, version > fork, isRecent(version, lost),
                    lost.newest(key) != shared.newest(key),
                    // A copy may have replayed it under another id.
                    tables[key.entity].map({ !isUnnamed($0) }) ?? false
                else { continue }
                guard histories.current.row(key, above: begin, where: { _ in true }) != nil else {
                    throw Violation(
                        "I11", "\(key) was \(text(lost.newest(key))) before the restore, and nobody replayed it")
                }
                try checkCells(key, lost, shared.newest(key), histories.current, above: begin)
            }
        }
    }

    private func isRecent(_ version: Version, _ history: OracleHistory) -> Bool {
        world.time - history[version].time < World.week
    }

    /// Each cell that was lost came again, or an edit that was made elsewhere came in its place.
    private func checkCells(
        _ key: OracleKey, _ lost: OracleHistory, _ before: [Value?]?, _ current: OracleHistory, above begin: Version
    ) throws {
        guard let table = tables[key.entity] else { return }
        guard let after = lost.newest(key) else {
            guard current.row(key, above: begin, where: { $0 == nil }) == nil else { return }
            // Where edits win, one that came before the deletion was back has won over it.
            if table.isRevivedByEdits, current.row(key, above: begin, where: { $0 != nil }) != nil { return }
            throw Violation("I11", "\(key) was deleted before the restore, and nobody deleted it again")
        }
        for (index, column) in table.data.enumerated() where before.map({ $0[index] != after[index] }) ?? true {
            guard isRecent(lastWrite(of: index, key, table, lost, through: lost.head), lost) else { continue }
            let came = current.row(key, above: begin) { cells in
                guard let cell = cells?[index] else { return true }
                return cell == after[index]
                    || cell != before?[index] && allowed[OracleCell(key: key, column: column, value: cell)] != nil
            }
            guard came == nil, !isLetGo(after, index, table), try !isAsked(key, column, after[index]) else { continue }
            throw Violation(
                "I11",
                "\(key).\(column) was \(after[index]?.bare ?? "") before the restore, and nobody replayed it")
        }
    }

    /// Whether a row lets go of its parent there, which somebody has deleted.
    private func isLetGo(_ cells: [Value?], _ index: Int, _ table: OracleTable) -> Bool {
        table.parents.contains { parent in
            guard !parent.isCascade, parent.index == index, let place = parent.key(cells.map { $0 ?? .null }) else {
                return false
            }
            return scopes.values.contains { $0.hasTombstone(of: place) }
        }
    }

    /// Whether some app was asked about a value: a server that has lost two histories cannot tell which of two edits
    /// was the later one, and where the app decides about conflicts, it decides about that too.
    private func isAsked(_ key: OracleKey, _ column: String, _ value: Value?) throws -> Bool {
        guard let value else { return false }
        return try world.devices.contains { device in
            try device.file.queue.unsafeRead { db in
                try names.all(of: key).contains { record in
                    try OracleListing.isAsked(db, key.entity, record, column, value)
                }
            }
        }
    }
}
