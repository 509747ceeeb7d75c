import TidemarkCore
package import TidemarkWire

extension SyncServer {
    /// `GET /sync/changes`: one page of what changed since a checkpoint (A4).
    ///
    /// - Parameters:
    ///   - takes: how rows may come that the reader holds an older form of.
    ///   - client: how the device names itself, where it does.
    package func changes(
        in scope: Scope, since: String?, limit: Int64?, takes: Differences = [], access: Access,
        client: String? = nil
    ) async throws -> [UInt8] {
        try access.require(.read, in: scope)
        let limit = try pageLimit(limit)
        let device = try access.device(client)
        let members = try await page(
            of: scope, since: since, limit: limit, leavingOut: [], takes: takes, device: device, for: access)
        return [UInt8(ascii: "{")] + members + [UInt8(ascii: "}")]
    }

    func pageLimit(_ limit: Int64?) throws(Problem) -> Int {
        guard let limit else { return limits.defaultPage }
        guard (1...Int64(limits.maximumPage)).contains(limit) else {
            throw Problem(.limitOutOfRange, "`limit` is \(limit); it may be from 1 to \(limits.maximumPage).")
        }
        return Int(limit)
    }

    /// Reads a page in one view of the scope: its members from `scope` to `head`, without braces.
    ///
    /// - Parameters:
    ///   - own: versions that the reader wrote itself in this very request and knows already.
    ///   - oldest: the first version of what the reader holds by the verdicts of this very request.
    ///   - device: which device reads, where it has said so.
    ///   - report: its word on itself.
    ///   - access: who reads.
    func page(
        of scope: Scope, since: String?, limit: Int, leavingOut own: Set<Version>, holding oldest: Version? = nil,
        takes: Differences, device: DeviceName?, telling report: DeviceReport? = nil, for access: Access
    ) async throws -> [UInt8] {
        let (withheld, remembered) = (self.withheld(from: access), access.remembered(device))
        let byteBudget = limits.pageBytes
        let declarations = declarations
        let key = store.tokenKey
        let (bytes, news) = try await readScope(scope, for: access.principal) { reader in
            let history = reader.state.history
            let scan =
                try since.map { token in
                    try LostHistory(reader, of: device).resume(try Checkpoint(token: token, scope: scope, key: key))
                }
                ?? .beginning(
                    of: history,
                    holding: [oldest, try self.firstHeld(by: device, reader)].compactMap { $0 }.min())
            var rows = RowSplicer(limit: limit, byteBudget: byteBudget)
            rows.writer.raw("\"scope\":")
            rows.writer.string(scope.name)
            rows.writer.memberName("since")
            if let since { rows.writer.string(since) } else { rows.writer.raw("null") }
            // The epoch is that of the head, although the rows go to the horizon only: verdicts of this request, or of
            // an earlier one of the scan, may be above it, and of a later opening of the store.
            rows.writer.member("epoch", history.epoch(of: history.head).text)
            rows.writer.raw(",\"changes\":[")
            let differ = RowDiffer(reader, declarations, takes, complete: scan.complete)
            var position: Version?
            try reader.changes(
                after: scan.position, through: scan.horizon, tombstonesAfter: scan.tombstonesAfter
            ) { change in
                if withheld.holdRow(change) {
                    guard rows.passOver(change) else { return false }
                } else if !own.contains(change.version) {
                    guard rows.hasRoom(for: change) else { return false }
                    rows.append(change, differ.row(for: change))
                }
                position = change.version
                return true
            }
            let next = scan.advanced(to: rows.isFull ? position : nil)
            rows.writer.raw("]")
            rows.writer.member("nextSince", next.token(scope: scope, key: key))
            rows.writer.memberName("hasMore")
            rows.writer.bool(rows.isFull)
            rows.writer.member("head", scan.horizon)
            let retained = since == nil ? nil : scan.retained
            return (rows.writer.bytes, try self.news(of: remembered, at: retained, telling: report, reader))
        }
        await note(news, of: remembered, in: scope)
        return bytes
    }
}
