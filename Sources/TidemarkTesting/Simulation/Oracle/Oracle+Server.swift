import Foundation
import Tidemark
import TidemarkServer
import TidemarkWire

// The server's log, and what it tells devices of it.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// Reads what was committed since the last time.
    func readLog() {
        check {
            for scope in world.app.parts { try readLog(of: scope) }
        }
    }

    private func readLog(of scope: Scope) throws {
        let state = try world.server.store.state(of: scope)
        let head = scopes[scope]?.current.head ?? 0
        guard state.head != head else { return }
        scopes[scope]?.note(state.incarnations)
        var last = head
        for entry in try world.server.store.log(of: scope, after: head) {
            last += 1
            // Where the window is small, a push sweeps what it has replaced itself before anybody reads it.
            while last < entry.version, last < state.sweepFloor {
                let key = OracleKey(entity: entry.entity, record: entry.record)
                scopes[scope]?.append(
                    OracleHistory.Row(key: key, kind: .idmap, cells: nil, payload: nil, time: world.time))
                last += 1
            }
            guard entry.version == last else {
                throw Violation("I3", "log of \(scope): version \(entry.version) comes after \(last - 1)")
            }
            try append(entry, to: scope)
        }
        guard last == state.head else {
            throw Violation("I3", "log of \(scope): the head is \(state.head), its last row \(last)")
        }
    }

    private func append(_ entry: LogEntry, to scope: Scope) throws {
        let key = OracleKey(entity: entry.entity, record: entry.record)
        let former = scopes[scope]?.current.newest(key)
        var row = OracleHistory.Row(key: key, kind: entry.kind, payload: entry.payload, time: world.time)
        if let table = tables[entry.entity], entry.kind != .delete, let payload = entry.payload {
            row.cells = try table.cells(payload)
        }
        if entry.kind == .idmap, let payload = entry.payload { try learn(payload) }
        let live = scopes[scope]?.current.newestLive(key)
        scopes[scope]?.append(row)
        // A row of a lost history may be there again before its device replays it.
        if let former, entry.kind != .idmap, former == row.cells, scopes[scope]?.newest == 0, !isLost(key) {
            throw Violation("I8", "log of \(scope), version \(entry.version): nothing changes in \(key)")
        }
        if entry.kind == .delete { try checkAsked(key, in: scope, at: entry.version) }
        guard let table = tables[entry.entity], let cells = row.cells, !ruled.contains(entry.entity),
            !isUnnamed(table), !table.isDecidedByApp || former != nil || live == nil
        else { return }
        for (index, column) in table.data.enumerated() {
            guard let value = cells[index], value != .null, value != table.defaults[index],
                former.map({ $0[index] != value }) ?? true,
                !table.isRevivedByEdits || former != nil || live?[index] != value,
                !table.authoritative.contains(column)
            else { continue }
            if devices.contains(where: { $0.scattered.contains(key) }) { continue }
            if former == nil, table.hasSeed(key), isForgotten(key, in: scope) {
                deletes.takeBack(key)
                continue
            }
            let cell = OracleCell(key: key, column: column, value: value)
            entered[cell, default: 0] += 1
            let copies = scopes[scope]?.newest == 0 ? 0 : copied[cell, default: 0]
            guard entered[cell, default: 0] > allowed[cell, default: 0] + copies else { continue }
            throw Violation(
                "I8",
                """
                log of \(scope), version \(entry.version): \(key).\(column) becomes \(value.bare) for the \
                \(entered[cell, default: 0]). time, written \(allowed[cell, default: 0]) times
                """)
        }
    }

    /// Whether the record's tombstone is gone: a device that begins then brings the row that came with its app.
    private func isForgotten(_ key: OracleKey, in scope: Scope) -> Bool {
        guard let deleted = scopes[scope]?.current.versions[key]?.dropLast().last,
            let state = try? world.server.store.state(of: scope)
        else { return false }
        return deleted <= state.retentionFloor
    }

    /// The store was opened anew, from what it was or from a backup: whatever is above its head is lost.
    func serverOpened() {
        noteLogged()
        check {
            for scope in world.app.parts {
                let head = try world.server.store.state(of: scope).head
                guard let lost = scopes[scope]?.current, head < lost.head else {
                    // Written by a request that the last opening did not live to answer.
                    try readLog(of: scope)
                    continue
                }
                scopes[scope]?.goBack(to: head)
                lostHistory(of: scope, above: head)
            }
        }
        checkStore()
    }

    func serverCloned() {
        for scope in world.app.parts { scopes[scope]?.clone() }
    }

    /// A copy of the server goes on in its place: what was written here since is lost, until it comes back.
    func serverExchanged() {
        noteLogged()
        for scope in world.app.parts {
            if let fork = scopes[scope]?.exchange() { lostHistory(of: scope, above: fork) }
        }
        checkStore()
    }

    private func lostHistory(of scope: Scope, above version: Version) {
        for device in devices.indices { devices[device].forgetLogged(in: scope, above: version) }
        recount()
    }

    private func recount() {
        entered = [:]
        for scope in scopes.values {
            var former: [OracleKey: [Value?]] = [:]
            for row in scope.current.rows {
                defer { former[row.key] = row.cells }
                if row.kind == .delete { entered[.delete(row.key), default: 0] += 1 }
                guard let cells = row.cells, let table = tables[row.key.entity] else { continue }
                for (index, column) in table.data.enumerated()
                where cells[index] != former[row.key].flatMap({ $0[index] }) {
                    entered[OracleCell(key: row.key, column: column, value: cells[index]), default: 0] += 1
                }
            }
        }
    }

    /// What the store still keeps is what was committed.
    func checkStore() {
        check {
            for scope in world.app.parts {
                guard let history = scopes[scope]?.current else { continue }
                var kept: Set<Version> = []
                for entry in try world.server.store.log(of: scope, after: 0) {
                    kept.insert(entry.version)
                    let row = entry.version <= history.head ? history[entry.version] : nil
                    guard row?.key.record == entry.record, row?.kind == entry.kind, row?.payload == entry.payload else {
                        throw Violation("I1", "log of \(scope): version \(entry.version) is not what was committed")
                    }
                }
                let gone = history.versions.filter { _, versions in
                    versions.last.map { history[$0].cells != nil && !kept.contains($0) } ?? false
                }
                if let key = gone.keys.min() {
                    throw Violation("I1", "log of \(scope): \(key) is gone, and nobody deleted it")
                }
            }
        }
    }

    // MARK: Answers

    /// The server met an error of its own: nothing that a device sends may bring it to that.
    func serverFailed(_ error: any Error) { check { throw Violation("server", "\(error)") } }

    /// The server has answered a request.
    func answered(_ message: Message, _ response: TransportResponse) {
        verdicts.heads = scopes.mapValues(\.current.head)
        readLog()
        check {
            guard response.status != 500 else { throw Violation("server", "it answers with an error of its own") }
            guard response.status == 200, message.request.path != "/sync/declarations" else { return }
            guard let scope = message.request.oracleScope else { return }
            let level = world.access(of: message.device, to: scope).level
            guard level != .none else {
                throw Violation("I9", "device \(message.device) has no access to \(scope) and is answered")
            }
            guard let history = scopes[scope]?.current,
                let answer = try? JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
            else { return }
            let isWritten = (answer["results"] as? [[String: Any]] ?? []).contains { result in
                ["applied", "merged"].contains(result["status"] as? String) && result["replayed"] == nil
            }
            guard !isWritten || level == .readWrite else {
                throw Violation("I9", "device \(message.device) may only read \(scope), and has written")
            }
            try checkVerdicts(message, answer, scope)
            for change in answer["changes"] as? [[String: Any]] ?? [] {
                try checkChange(change, history, "answer to device \(message.device) for \(scope)")
            }
        }
    }

    private func checkChange(_ change: [String: Any], _ history: OracleHistory, _ place: String) throws {
        guard let type = change["type"] as? String, type != "idmap" else { return }
        let version = change["version"] as? Int64 ?? Int64(change["version"] as? Int ?? 0)
        let key = OracleKey(entity: change["entity"] as? String ?? "", record: change["id"] as? String ?? "")
        // A record that was asked for by name and is not there, as of the head.
        if type == "none" {
            guard history.newest(key) == nil else { throw Violation("I3", "\(place): there is no \(key)") }
            return
        }
        guard version >= 1, version <= history.head else {
            throw Violation("I9", "\(place): \(key) at \(version), the head is \(history.head)")
        }
        let row = history[version]
        guard row.key == key, (row.kind == .delete) == (type == "delete") else {
            throw Violation("I9", "\(place): \(type) \(key) at \(version), the log has \(row.kind) \(row.key) there")
        }
        guard let cells = row.cells, let table = tables[key.entity], let data = change["data"] as? [String: Any] else {
            return
        }
        for (index, column) in table.data.enumerated() {
            guard let found = data[column].map(Value.init(json:)) ?? nil, let expected = cells[index] else { continue }
            guard found.isAlmost(expected) else {
                throw Violation(
                    "I3",
                    "\(place): \(key).\(column) at \(version) is \(found.bare), the log has \(expected.bare)")
            }
        }
    }
}

extension TransportRequest {
    fileprivate var oracleScope: Scope? {
        if let name = query.first(where: { $0.name == "scope" })?.value { return Scope(name) }
        let body = try? JSONSerialization.jsonObject(with: Data(self.body)) as? [String: Any]
        return (body?["scope"] as? String).flatMap { Scope($0) }
    }
}

extension Value {
    /// `nil` for what is no plain value.
    init?(json: Any) {
        switch json {
        case is NSNull: self = .null
        case let text as String: self = .text(text)
        case let number as NSNumber: self = .real(number.doubleValue)
        default: return nil
        }
    }

    /// A JSON reader that is not ours does not tell integers from reals.
    func isAlmost(_ other: Value) -> Bool {
        if case .integer(let integer) = other, case .real(let real) = self { return Double(integer) == real }
        return self == other
    }
}
