import Foundation
import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

// The server's verdicts have to say that two edits met where they did, and nowhere else (T1), and that the later one
// stands where that is the rule (T37).
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// The server has answered a push to one scope.
    func checkVerdicts(_ message: Message, _ answer: [String: Any], _ scope: Scope) throws {
        guard scopes[scope]?.newest == 0, let results = answer["results"] as? [[String: Any]],
            !results.isEmpty,
            let request = try? JSONSerialization.jsonObject(with: Data(message.request.body)) as? [String: Any]
        else { return }
        var verdicts: [OracleVerdict] = []
        for operation in request["operations"] as? [[String: Any]] ?? [] {
            let result = results.first {
                $0["lane"] as? String == operation["lane"] as? String
                    && $0["number"] as? Int == operation["number"] as? Int
            }
            guard let result, let verdict = OracleVerdict(operation, result, device: message.device, scope: scope)
            else { continue }
            verdicts.append(verdict)
        }
        noteGroups(verdicts, scope)
        for verdict in verdicts where names[verdict.key] == verdict.key {
            noteForgotten(verdict)
            noteRefused(verdict)
            try checkRecord(verdict)
            guard !verdict.isAgain, !ruled.contains(verdict.key.entity) else {
                noteAuthor(verdict)
                continue
            }
            let isAlone = verdicts.count { $0.key == verdict.key } == 1
            try check(verdict, isAlone: isAlone)
        }
    }

    private func check(_ verdict: OracleVerdict, isAlone: Bool) throws {
        guard !verdict.isReplayed, let history = scopes[verdict.scope]?.current, let table = tables[verdict.key.entity]
        else { return }
        let isWritten =
            verdict.version.map { version in
                version > self.verdicts.heads[verdict.scope, default: 0] && version <= history.head
                    && history[version].key == verdict.key && self.verdicts.authors[verdict.scope]?[version] == nil
            } ?? false
        defer { if isWritten { noteAuthor(verdict) } }
        // Of an operation that wrote nothing it can be told what it met only if no other of the request touched it.
        guard isWritten || isAlone, verdict.isUpsert else { return }
        let end = isWritten ? (verdict.version ?? 0) - 1 : history.head
        let newest = history.versions[verdict.key]?.last { $0 <= end }
        guard let newest, let cells = history[newest].cells else {
            guard newest != nil, verdict.base != nil, verdict.took, !table.isRevivedByEdits, isWritten else { return }
            throw Violation("I6", "an edit of device \(verdict.device) makes the deleted \(verdict.key) anew")
        }
        try checkFields(verdict, table, cells, history, end)
        if isWritten { try checkOthers(verdict, table, cells, history) }
    }

    /// An edit leaves alone what it does not name.
    private func checkOthers(
        _ verdict: OracleVerdict, _ table: OracleTable, _ former: [Value?], _ history: OracleHistory
    ) throws {
        guard let version = verdict.version, let cells = history[version].cells, verdict.base != nil else { return }
        for (index, column) in table.data.enumerated()
        where !verdict.names(column) && !table.authoritative.contains(column) && cells[index] != former[index] {
            throw Violation(
                "I1",
                """
                \(verdict.key).\(column) becomes \(cells[index]?.bare ?? "") at \(version), by an edit of device \
                \(verdict.device) that does not name it; it was \(former[index]?.bare ?? "")
                """)
        }
    }

    private func noteAuthor(_ verdict: OracleVerdict) {
        guard let version = verdict.version, !verdict.isReplayed,
            version > self.verdicts.heads[verdict.scope, default: 0],
            self.verdicts.authors[verdict.scope]?[version] == nil
        else { return }
        self.verdicts.authors[verdict.scope, default: [:]][version] = OracleVerdicts.Author(
            device: verdict.device, lane: verdict.lane, time: world.time, fields: Set(verdict.fields.keys))
    }

    private func checkFields(
        _ verdict: OracleVerdict, _ table: OracleTable, _ cells: [Value?], _ history: OracleHistory, _ end: Version
    ) throws {
        var hasMet = false
        for (index, column) in table.data.enumerated() where !table.authoritative.contains(column) {
            // A document may still name a record by the id that it had on the device.
            guard let mine = verdict.fields[column].flatMap(Value.init(json:)).map({ names[$0] }),
                let theirs = cells[index]
            else {
                hasMet = hasMet || verdict.fields[column] != nil || verdict.fields.isEmpty
                continue
            }
            let last = lastChange(of: index, verdict.key, history, through: end)
            let written = lastWrite(of: index, verdict.key, table, history, through: end)
            let author = verdicts.authors[verdict.scope]?[written]
            // A device without the column writes nothing to it.
            let isNamed = table.captureCount == nil || author?.fields.contains(column) ?? false
            let isUnseen = written > verdict.base(of: column) && author?.lane != verdict.lane && isNamed
            hasMet = hasMet || last > verdict.base(of: column) && !mine.isAlmost(theirs)
            let place = "\(verdict.key).\(column) of device \(verdict.device), made on \(verdict.base(of: column))"
            if isUnseen, verdict.took, let author, author.device != verdict.device, !mine.isAlmost(theirs),
                !verdict.tells(of: column)
            {
                throw Violation("I1", "\(place), is taken over what was written at \(written), and nobody is told")
            }
            if last <= verdict.base(of: column), verdict.tells(of: column),
                !isSetAgain(column, verdict, history, isNew: table.captureCount != nil && theirs == .null)
            {
                throw Violation("T1", "\(place), is told to have met another edit; the last one was at \(last)")
            }
            if verdict.lost.contains(where: { $0.field == column && $0.rule == "lastEditWins" }) {
                try checkTimes(verdict, column, mine, author, place)
            }
            try noteTold(verdict, column, index, history)
        }
        guard verdict.status != "conflict" || hasMet else {
            throw Violation("T1", "\(verdict.key) of device \(verdict.device) is a conflict, and met nothing")
        }
    }

    /// Whether somebody set a field to what it was since the edit was made on it: where the later edit wins, that one
    /// may be the later one. The first to write NULL into a column that a migration has added sets it too.
    private func isSetAgain(
        _ column: String, _ verdict: OracleVerdict, _ history: OracleHistory, isNew: Bool
    ) -> Bool {
        guard verdict.isByTime(column) || isNew, let authors = verdicts.authors[verdict.scope] else { return false }
        return (history.versions[verdict.key] ?? []).contains { version in
            version > verdict.base(of: column) && authors[version]?.fields.contains(column) == true
        }
    }

    /// When a cell came to what it is. A record that an edit has revived is what it was before; otherwise whoever makes
    /// one anew writes all of it.
    func lastWrite(
        of index: Int, _ key: OracleKey, _ table: OracleTable, _ history: OracleHistory, through end: Version
    ) -> Version {
        guard table.isRevivedByEdits else { return lastChange(of: index, key, history, through: end) }
        var (last, former): (Version, [Value?]?) = (0, nil)
        for version in history.versions[key] ?? [] where version <= end {
            guard let cells = history[version].cells else { continue }
            if former.map({ $0[index] != cells[index] }) ?? true { last = version }
            former = cells
        }
        return last
    }

    private func lastChange(of index: Int, _ key: OracleKey, _ history: OracleHistory, through end: Version) -> Version
    {
        var (last, former): (Version, [Value?]?) = (0, nil)
        for version in history.versions[key] ?? [] where version <= end {
            let cells = history[version].cells
            if former == nil || cells == nil || former?[index] != cells?[index] { last = version }
            former = cells
        }
        return last
    }

    /// An edit that was made after another one was in the log is the later one; its device's clock was always right.
    private func checkTimes(
        _ verdict: OracleVerdict, _ column: String, _ mine: Value, _ author: OracleVerdicts.Author?, _ place: String
    ) throws {
        guard !world.hasWrongServerClock, !world.wrongClocks.contains(verdict.device),
            !isLost(verdict.key),
            let write = devices[verdict.device].writes[verdict.key]?[column], write.value == mine,
            let author, let time = verdicts.times[write.serial], author.time < time
        else { return }
        throw Violation("T37", "\(place) at \(time) ms, loses to an edit that was in the log at \(author.time) ms")
    }

    private func noteTold(_ verdict: OracleVerdict, _ column: String, _ index: Int, _ history: OracleHistory) throws {
        let base = verdict.base(of: column)
        let row = history.versions[verdict.key]?.last { $0 <= base }.flatMap { history[$0].cells }
        guard verdict.tells(of: column),
            !verdict.overwritten.contains(where: { told in
                guard told.field == column else { return false }
                guard let theirs = told.theirs, let made = row?[index] else { return told.theirs == row?[index] }
                return theirs.isAlmost(made)
            }),
            !verdict.overwritten.contains(where: { isOwn($0, column, verdict) })
        else { return }
        verdicts.told[verdict.device, default: []].insert(
            OracleVerdicts.Telling(key: verdict.key, lane: verdict.lane, number: verdict.number, time: world.time))
    }

    /// A device that asks again after so long that the server has forgotten it hears only that its edit is done with:
    /// the first answer, which told more, has not reached it.
    private func noteForgotten(_ verdict: OracleVerdict) {
        guard verdict.isReplayed, verdict.status == "settled" else { return }
        // The server never had the record: its insert was refused, and the refusal was not heard.
        if !wasLogged(verdict.key) { verdicts.refused.insert(verdict.key) }
        guard let told = verdicts.told[verdict.device] else { return }
        verdicts.told[verdict.device] = told.filter { telling in
            telling.lane != verdict.lane || telling.number != verdict.number
                || !world.hasWrongServerClock && world.time - telling.time < SimulatedServer.deviceRetention
        }
    }

    /// A record that was refused is not there for later edits, also where the refusal has not been heard.
    private func noteRefused(_ verdict: OracleVerdict) {
        guard let refusal = verdict.refusal, refusal != RejectionCode.recordDeleted else { return }
        verdicts.refused.insert(verdict.key)
    }

    /// Whether what was overwritten is what this device had set itself, of which the server remembers no more whose it
    /// was: the edit was made on it, and met nobody.
    private func isOwn(
        _ overwritten: (field: String, theirs: Value?, rule: String), _ column: String, _ verdict: OracleVerdict
    ) -> Bool {
        guard overwritten.field == column, let theirs = overwritten.theirs else { return false }
        // Each device has what comes with the app, whichever has sent it.
        if tables[verdict.key.entity]?.seed(verdict.key, column).map({ theirs.isAlmost($0) }) ?? false { return true }
        return devices[verdict.device].written.contains { cell in
            cell.key == verdict.key && cell.column == column && cell.value.map { theirs.isAlmost($0) } ?? false
        }
    }

    /// At the end: each device lists the records of which it was told that edits met.
    func checkTold(_ device: Int) throws {
        guard !world.lostDevices.contains(device), scopes.values.allSatisfy({ $0.newest == 0 }) else { return }
        try world.devices[device].file.queue.unsafeRead { db in
            for key in Set(verdicts.told[device, default: []].map(\.key)).sorted() {
                let isListed = try Bool.fetchOne(
                    db, sql: "SELECT EXISTS (SELECT 1 FROM tidemark_conflict WHERE entity = ?1 AND record = ?2)",
                    arguments: [key.entity, key.record])
                guard isListed != true else { continue }
                throw Violation("T1", "device \(device) was told that an edit of \(key) met another one: not listed")
            }
        }
    }
}
