import TidemarkCore
import TidemarkWire

extension SyncEngine {
    /// Proves that this device holds what the server holds: syncs, sums up the rows of every table as the server knows
    /// them (beneath edits made here, and quarantined rows), and compares the sums with the server's. Where
    /// they differ, the differing records are found; with `repairing`, those are fetched again and put right, and
    /// nothing else. Edits that wait for their verdict are never touched.
    ///
    /// A repair never takes away what may be unsent: a row that the server does not know is listed
    /// (``VerifyReport/Table/unsentIDs``) and sent, and the values of a row that the server has otherwise stay in
    /// ``conflicts()``, from where `.keepMine` restores them. The tables are read in short transactions; the app may
    /// go on reading and writing.
    ///
    /// ```swift
    /// let report = try await sync.verify(repairing: true)
    /// print(report.records, report.differing, report.repaired, report.isClean)
    /// ```
    /// - Parameters:
    ///   - repairing: what differs is put right.
    ///   - discardingLocal: with `repairing`: rows that the server does not know are deleted here, and what differs is
    ///     not kept.
    /// - Throws: the ``SyncError`` of the first scope that could not be compared, after the others were worked through;
    ///   as ``install()`` does; `CancellationError` when cancelled.
    public func verify(repairing: Bool = false, discardingLocal: Bool = false) async throws -> VerifyReport {
        let repair: RecordRepair? =
            repairing ? (discardingLocal ? .discardingLocal : .keepingLocal) : nil
        let start = Dependencies.current.uptime
        try await install()
        if repair == .discardingLocal { try await discardUnseen() }
        var report = VerifyReport()
        var errors: [Scope: SyncError] = [:]
        await withTaskGroup(of: (Scope, Verification.Result).self) { group in
            for driver in drivers {
                group.addTask { (driver.scope, await driver.verify(repairing: repair)) }
            }
            for await (scope, result) in group {
                report.scopes[scope] = result.part
                report.roundTrips += result.counts.roundTrips
                report.bytesSent += result.counts.bytesSent
                report.bytesReceived += result.counts.bytesReceived
                errors[scope] = result.error
            }
        }
        try Task.checkCancellation()
        if let error = followed.lazy.compactMap({ errors[$0] }).first { throw error }
        report.duration = .milliseconds(Dependencies.current.uptime - start)
        return report
    }
}
