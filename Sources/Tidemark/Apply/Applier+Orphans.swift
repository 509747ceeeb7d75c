import GRDB
import TidemarkWire

extension Applier {
    /// The verdict on an operation whose record is not looked after here any more: its row went with the rule that had
    /// put it into this scope, and what was edited is orphaned (RuleChange). The verdict says nothing about a row that
    /// is quarantined or gone; the server is asked how the record stands. `false` for any other operation.
    func applyOrphan(
        _ verdict: Verdict, _ entry: OutboxEntry, _ table: ApplyTable, _ key: [Cell]
    ) throws -> Bool {
        guard try table.records.shadow(db, key) == nil, try table.records.row(db, key) == nil else { return false }
        // There is no edit here any more that the app could decide about, or that could be listed as lost.
        try Outbox.finish(db, entry, verdict.status == .conflict ? Verdict(.outcomeUnknown) : verdict, now: now)
        try Outbox.removeUntold(db, id: entry.id)
        if hadRefusals, verdict.tookEffect { try RejectedOperation.supersede(db, by: entry) }
        if verdict.status == .rejected { outcome.rejected += 1 }
        try RefetchQueue.note(db, scope, entry.entity, entry.record)
        outcome.refetch += 1
        return true
    }
}
