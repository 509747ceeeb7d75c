import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("Conflict policies")
struct PolicyTests {
    private func edit(
        _ fields: DataObject, base: Version?, kind: Operation.Kind = .upsert
    ) -> Operation {
        var operation = Operation(kind, entity: "card", id: "c1")
        operation.fields = fields
        operation.baseVersion = base
        return operation
    }

    private func name(_ name: String) -> ArraySlice<UInt8> { DataObject.canonical(name)[...] }

    /// A record at version 9 whose fields were edited at the given stamps, all but `old` after version 5.
    private func current(_ data: DataObject, stamps: [String: Int64] = [:]) -> Merge.Current {
        var versions = FieldVersions(common: 3)
        for (field, stamp) in stamps { versions.set(name(field), to: 9, stamp: EditStamp(packed: stamp)) }
        return Merge.Current(version: 9, data: data, fieldVersions: versions)
    }

    private func decide(
        _ operation: Operation, _ current: Merge.Current?, _ conflict: ConflictPolicy, deletes: DeletePolicy = .win,
        stamp: Int64 = 0, decided: DataObject = .empty, serverFields: [String] = []
    ) -> Merge.Outcome {
        Merge.decide(
            operation, on: current,
            declaration: .state("card", conflict: conflict, serverFields: serverFields, deletes: deletes),
            stamp: EditStamp(packed: stamp), decided: decided, mayWriteServerFields: false)
    }

    @Test("Nobody wrote a field that the record does not have", arguments: ConflictPolicy.allCases)
    func absentField(policy: ConflictPolicy) {
        let row = current(DataObject(["a": 1]), stamps: ["a": 100])
        let outcome = decide(edit(DataObject(["b": 5]), base: nil), row, policy, stamp: 99)
        let answer = Merge.Answer(status: .merged, needsRecord: true)
        #expect(outcome == .write(DataObject(["a": 1, "b": 5]), written: .only([name("b")]), answer))
    }

    // MARK: The later edit

    @Test("The later edit takes the field, although it came first or last")
    func laterEdit() {
        let row = current(DataObject(["a": 1, "b": 2]), stamps: ["a": 100, "b": 100])
        let later = decide(edit(DataObject(["a": 5]), base: 5), row, .lastEditWins, stamp: 101)
        let overwrite = Verdict.Overwrite(field: "a", version: 9, theirs: 1, rule: .lastEditWins)
        #expect(
            later
                == .write(
                    DataObject(["a": 5, "b": 2]), written: .only([name("a")]),
                    Merge.Answer(status: .merged, needsRecord: true, overwrites: [overwrite])))
        let earlier = decide(edit(DataObject(["a": 5]), base: 5), row, .lastEditWins, stamp: 99)
        let loss = Verdict.Loss(field: "a", rule: .lastEditWins)
        #expect(earlier == .nothing(Merge.Answer(status: .merged, needsRecord: true, losses: [loss])))
    }

    @Test("Each field goes to its own later edit")
    func perField() {
        let row = current(DataObject(["a": 1, "b": 2]), stamps: ["a": 100, "b": 200])
        let outcome = decide(edit(DataObject(["a": 5, "b": 6]), base: 5), row, .lastEditWins, stamp: 150)
        guard case .write(let data, let written, let answer) = outcome else { return #expect(Bool(false)) }
        #expect(data == DataObject(["a": 5, "b": 2]))
        #expect(written == .only([name("a")]))
        #expect(answer.losses.map(\.field) == ["b"])
        #expect(answer.overwrites.map(\.field) == ["a"])
    }

    @Test("An edit that has seen the other one is later, whatever its clock says")
    func seenIsLater() {
        let row = current(DataObject(["a": 1]), stamps: ["a": 100])
        let outcome = decide(edit(DataObject(["a": 5]), base: 9), row, .lastEditWins, stamp: 50)
        #expect(outcome == .write(DataObject(["a": 5]), written: .only([name("a")]), Merge.Answer()))
        var versions = FieldVersions(common: 1, stamp: EditStamp(packed: 100))
        versions.set(name("a"), to: 2, stamp: EditStamp(packed: 50))
        #expect(versions.stamp(of: name("a")) == EditStamp(packed: 100))
    }

    @Test("Two edits of one moment end alike in either order")
    func ties() {
        for (first, second) in [(1, 2), (2, 1)] as [(Int64, Int64)] {
            let row = current(DataObject(["a": .integer(first)]), stamps: ["a": 100])
            let outcome = decide(
                edit(DataObject(["a": .integer(second)]), base: 5), row, .lastEditWins, stamp: 100)
            switch outcome {
            case .write(let data, _, _): #expect(data == DataObject(["a": 2]))
            case .nothing: #expect(first == 2)
            case .refuse, .conflict: #expect(Bool(false))
            }
        }
    }

    @Test("The same value edited later keeps an edit made in between from winning")
    func sameValueLater() {
        let row = current(DataObject(["a": 1]), stamps: ["a": 100])
        let same = decide(edit(DataObject(["a": 1]), base: 5), row, .lastEditWins, stamp: 300)
        #expect(same == .write(DataObject(["a": 1]), written: .only([name("a")]), Merge.Answer()))
        let seen = decide(edit(DataObject(["a": 1]), base: 9), row, .lastEditWins, stamp: 300)
        #expect(seen == .nothing(Merge.Answer()))
    }

    // MARK: The app decides

    @Test("Manual: an edit of a field that others changed is not taken in any part, and brings the record")
    func manual() {
        let row = current(DataObject(["a": 1, "b": 2]), stamps: ["a": 1])
        let stale = decide(edit(DataObject(["a": 5, "b": 6]), base: 5), row, .manual)
        #expect(stale == .conflict(Verdict.Record(version: 9, data: DataObject(["a": 1, "b": 2]))))
        guard case .write(let data, _, _) = decide(edit(DataObject(["b": 6]), base: 5), row, .manual)
        else { return #expect(Bool(false)) }
        #expect(data == DataObject(["a": 1, "b": 6]))
        guard case .write = decide(edit(DataObject(["a": 5]), base: 9), row, .manual) else {
            return #expect(Bool(false))
        }
        // Both set the same: there is nothing to decide.
        guard case .nothing = decide(edit(DataObject(["a": 1]), base: 5), row, .manual) else {
            return #expect(Bool(false))
        }
    }

    // MARK: Deletes that lose

    private let tombstone = Merge.Current(
        version: 12, data: nil, fieldVersions: FieldVersions(common: 4),
        last: LastState(data: DataObject(["a": 1, "b": 2]), fieldVersions: FieldVersions(common: 4)))

    @Test("A delete that did not see an edit is not taken where edits win, and brings the record")
    func deleteLoses() {
        let row = current(DataObject(["a": 1]), stamps: ["a": 1])
        let unseen = decide(edit(.empty, base: 5, kind: .delete), row, .mergeFields, deletes: .lose)
        let loss = Verdict.Loss(field: nil, rule: .editWins)
        #expect(unseen == .nothing(Merge.Answer(status: .merged, needsRecord: true, losses: [loss])))
        let seen = decide(edit(.empty, base: 9, kind: .delete), row, .mergeFields, deletes: .lose)
        #expect(seen == .write(nil, written: .all, Merge.Answer()))
    }

    @Test("An edit of a deleted record revives it whole where edits win", arguments: ConflictPolicy.allCases)
    func editRevives(policy: ConflictPolicy) {
        let outcome = decide(edit(DataObject(["a": 7]), base: 5), tombstone, policy, deletes: .lose, stamp: 5)
        let answer = Merge.Answer(status: .merged, needsRecord: true, revived: 12)
        #expect(outcome == .write(DataObject(["a": 7, "b": 2]), written: .only([name("a")]), answer))
        guard case .refuse = decide(edit(DataObject(["a": 7]), base: 5), tombstone, policy, deletes: .win) else {
            return #expect(Bool(false))
        }
        // Nothing was edited after all, or nothing is known of what was deleted.
        guard case .refuse = decide(edit(.empty, base: 5), tombstone, policy, deletes: .lose) else {
            return #expect(Bool(false))
        }
        guard case .refuse = decide(edit(DataObject(["a": 7]), base: 5), nil, policy, deletes: .lose) else {
            return #expect(Bool(false))
        }
    }

    @Test("A record's last content is read from its tombstone's bytes")
    func lastState() {
        var versions = FieldVersions(common: 4, stamp: EditStamp(packed: 77))
        versions.set(name("a"), to: 6, stamp: EditStamp(packed: 99))
        let last = LastState(data: DataObject(["a": 1]), fieldVersions: versions)
        #expect(LastState(stored: last.stored()) == last)
        #expect(LastState(stored: versions.stored(rowVersion: 6)) == nil)
        #expect(LastState(stored: nil) == nil)
        #expect(LastState(stored: [0xff]) == nil)
    }

    // MARK: Fields of the server's, and rules

    @Test("A field that is the server's is told as lost only where another value was sent")
    func serverFields() {
        let row = current(DataObject(["title": "x", "summary": "good"]))
        for (sent, lost) in [("bad", ["summary"]), ("good", [])] as [(Value, [String])] {
            let outcome = decide(
                edit(DataObject(["title": "y", "summary": sent]), base: 9), row, .lastEditWins,
                serverFields: ["summary"])
            guard case .write(let data, _, let answer) = outcome else { return #expect(Bool(false)) }
            #expect(data == DataObject(["title": "y", "summary": "good"]))
            #expect(answer.losses == lost.map { Verdict.Loss(field: $0, rule: .serverFields) })
        }
    }

    @Test("A rule's decision stands under every policy, and the device is told", arguments: ConflictPolicy.allCases)
    func decided(policy: ConflictPolicy) {
        let row = current(DataObject(["a": 1, "b": 2]), stamps: ["a": 900])
        let outcome = decide(
            edit(DataObject(["a": 5]), base: 5), row, policy, decided: DataObject(["a": 6, "c": 1]))
        guard case .write(let data, _, let answer) = outcome else { return #expect(Bool(false)) }
        #expect(data == DataObject(["a": 6, "b": 2, "c": 1]))
        #expect(answer.status == .merged && answer.needsRecord)
        #expect(answer.losses == [Verdict.Loss(field: "a", rule: .serverRule)])
    }
}
