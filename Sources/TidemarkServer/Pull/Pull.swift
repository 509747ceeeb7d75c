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
    ///   - takesRemedies: whether the device is told what its operator asks of it.
    ///   - access: who reads.
    func page(
        of scope: Scope, since: String?, limit: Int, leavingOut own: Set<Version>, holding oldest: Version? = nil,
        takes: Differences, device: DeviceName?, telling report: DeviceReport? = nil, takesRemedies: Bool = false,
        for access: Access
    ) async throws -> [UInt8] {
        let withheld = self.withheld(from: access)
        // A device that may only read by now is heard on an earlier remedy all the same.
        let spoken = access.remembered(device) ?? (report?.remedy == nil ? nil : device)
        let key = store.tokenKey
        let (bytes, news, remembered) = try await readScope(scope, for: access.principal) { reader in
            let history = reader.state.history
            let scan =
                try since.map { token in
                    try LostHistory(reader, of: device).resume(try Checkpoint(token: token, scope: scope, key: key))
                }
                ?? .beginning(
                    of: history,
                    holding: [oldest, try self.firstHeld(by: device, reader)].compactMap { $0 }.min())
            let place = KeptPages.Key(
                scope: scope, moment: KeptPages.Moment(reader.state), scan: scan, limit: limit, takes: takes,
                withheld: withheld)
            let page = try self.rows(of: place, leavingOut: own, reader)
            var writer = JSONWriter(capacity: page.rows.count + 1024)
            writer.raw("\"scope\":")
            writer.string(scope.name)
            writer.memberName("since")
            if let since { writer.string(since) } else { writer.raw("null") }
            // The epoch is that of the head, although the rows go to the horizon only: verdicts of this request, or of
            // an earlier one of the scan, may be above it, and of a later opening of the store.
            writer.member("epoch", history.epoch(of: history.head).text)
            writer.raw(",\"changes\":[")
            writer.raw(page.rows)
            writer.raw("]")
            writer.member("nextSince", scan.advanced(to: page.end).token(scope: scope, key: key))
            writer.memberName("hasMore")
            writer.bool(page.end != nil)
            writer.member("head", scan.horizon)
            let known = try spoken.flatMap { try reader.standing(of: $0) }
            if takesRemedies { KeptRemedy.answer(report, known?.remedy, to: &writer) }
            let retained = since == nil ? nil : scan.retained
            let remembered = access.remembered(device) ?? (known == nil ? nil : spoken)
            let news = try self.news(of: remembered, known, at: retained, telling: report, reader)
            return (writer.bytes, news, remembered)
        }
        await note(news, of: remembered, in: scope)
        return bytes
    }

    /// The rows of a page. Those that others may get too are made once; a reader's own are left out of its page alone.
    private func rows(
        of place: KeptPages.Key, leavingOut own: Set<Version>, _ reader: any ScopeReader
    ) throws -> KeptPages.Page {
        // An empty one is made faster than found.
        guard own.isEmpty, place.scan.isScanning else { return try read(place, leavingOut: own, reader) }
        return try keptPages.page(place) {
            var page = try read(place, leavingOut: own, reader)
            // Without the room that was reserved for more rows.
            page.rows = page.rows.withUnsafeBufferPointer { Array($0) }
            return page
        }
    }

    private func read(
        _ place: KeptPages.Key, leavingOut own: Set<Version>, _ reader: any ScopeReader
    ) throws -> KeptPages.Page {
        let (scan, withheld) = (place.scan, place.withheld)
        var rows = RowSplicer(limit: place.limit, byteBudget: limits.pageBytes)
        let differ = RowDiffer(reader, declarations, place.takes, complete: scan.complete)
        var position: Version?
        try reader.changes(
            after: scan.position, through: scan.horizon, tombstonesAfter: scan.tombstonesAfter
        ) { change in
            if withheld.containsEntity(of: change) {
                guard rows.passOver(change) else { return false }
            } else if !own.contains(change.version) {
                guard rows.hasRoom(for: change) else { return false }
                rows.append(change, differ.row(for: change))
            }
            position = change.version
            return true
        }
        return KeptPages.Page(rows: rows.writer.bytes, end: rows.isFull ? position : nil)
    }
}
