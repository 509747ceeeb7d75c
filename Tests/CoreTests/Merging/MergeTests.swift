import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("How an edit meets the record")
struct MergeTests {
    private let task = EntityDeclaration("task")

    private func upsert(_ fields: DataObject, base: Version?) -> Operation {
        var operation = Operation(.upsert, entity: "task", id: "t1")
        operation.fields = fields
        operation.baseVersion = base
        return operation
    }

    private func current(_ data: DataObject?, _ version: Version, _ fields: [String: Version] = [:]) -> Merge.Current {
        var versions = FieldVersions(common: fields["*"] ?? version)
        for (name, version) in fields where name != "*" { versions.set(DataObject.canonical(name)[...], to: version) }
        return Merge.Current(version: version, data: data, fieldVersions: versions)
    }

    private func decide(
        _ operation: Operation, _ current: Merge.Current?, _ declaration: EntityDeclaration? = nil,
        seen: Set<Version> = [], service: Bool = false
    ) -> Merge.Outcome {
        Merge.decide(
            operation, on: current, declaration: declaration ?? task, seen: seen, mayWriteServerFields: service)
    }

    private func names(_ names: String...) -> Merge.Writes { .only(names.map { DataObject.canonical($0)[...] }) }

    @Test("An insert makes the record; over a tombstone it makes it anew")
    func insert() {
        let fields = DataObject(["a": 1])
        #expect(decide(upsert(fields, base: nil), nil) == .write(fields, written: .all, Merge.Answer()))
        #expect(
            decide(upsert(fields, base: nil), current(nil, 5)) == .write(fields, written: .all, Merge.Answer()))
    }

    @Test("A row that is older than its capture makes a record, and fills only what the record lacks (W79)")
    func seed() {
        func seed(_ fields: DataObject) -> Operation {
            var operation = upsert(fields, base: nil)
            operation.isSeed = true
            return operation
        }
        let fields = DataObject(["a": 1, "b": 2, "c": 3])
        #expect(decide(seed(fields), nil) == .write(fields, written: .all, Merge.Answer()))
        let row = current(DataObject(["a": 1, "b": 20]), 9)
        var answer = Merge.Answer(status: .merged, needsRecord: true)
        answer.losses = [Verdict.Loss(field: "b", rule: .firstCapture)]
        #expect(
            decide(seed(fields), row) == .write(DataObject(["a": 1, "b": 20, "c": 3]), written: names("c"), answer))
        #expect(decide(seed(DataObject(["a": 1, "b": 2, "c": nil])), row) == .nothing(answer))
        answer.losses = [Verdict.Loss(field: nil, rule: .firstCapture)]
        #expect(decide(seed(fields), current(nil, 9)) == .nothing(answer))
        let same = Merge.Answer(status: .merged, needsRecord: true)
        #expect(decide(seed(DataObject(["a": 1])), row) == .nothing(same))
    }

    @Test("Different fields of one record both stay, and the editor is told the row")
    func differentFields() {
        let row = current(DataObject(["a": 1, "b": 20]), 9, ["*": 3, "b": 9])
        let outcome = decide(upsert(DataObject(["a": 2]), base: 5), row)
        let answer = Merge.Answer(status: .merged, needsRecord: true)
        #expect(outcome == .write(DataObject(["a": 2, "b": 20]), written: names("a"), answer))
    }

    @Test("The same field goes to the later write, and what it covers is reported")
    func sameField() {
        let row = current(DataObject(["a": 1, "b": 20]), 9, ["*": 3, "a": 9])
        let outcome = decide(upsert(DataObject(["a": 2]), base: 5), row)
        let overwrite = Verdict.Overwrite(field: "a", version: 9, theirs: 1)
        let answer = Merge.Answer(status: .merged, needsRecord: false, overwrites: [overwrite])
        #expect(outcome == .write(DataObject(["a": 2, "b": 20]), written: names("a"), answer))
    }

    @Test("An edit of a record that was made anew since gets the row, although nothing is left to write")
    func madeAnew() {
        let row = current(DataObject(["a": 2]), 9)
        let told = Merge.Answer(status: .applied, needsRecord: true)
        #expect(decide(upsert(DataObject(["a": 2]), base: 0), row) == .nothing(told))
        #expect(decide(upsert(DataObject(["a": 2]), base: 9), row) == .nothing(Merge.Answer()))
        #expect(decide(upsert(DataObject(["a": 2]), base: 0), row, seen: [9]) == .nothing(Merge.Answer()))
        // Two made the same edit of one row: each has all of it.
        let edited = current(DataObject(["a": 2]), 9, ["*": 3, "a": 9])
        #expect(decide(upsert(DataObject(["a": 2]), base: 5), edited) == .nothing(Merge.Answer()))
    }

    @Test("An edit on the newest row is applied as it is")
    func seenAll() {
        let row = current(DataObject(["a": 1, "b": 20]), 9, ["*": 3, "a": 9])
        let outcome = decide(upsert(DataObject(["a": 2]), base: 9), row)
        #expect(outcome == .write(DataObject(["a": 2, "b": 20]), written: names("a"), Merge.Answer()))
    }

    @Test("A field's own base counts before the row's")
    func fieldBases() {
        var operation = upsert(DataObject(["a": 2]), base: 9)
        operation.fieldBases = [DataObject.canonical("a")[...]: 5]
        let row = current(DataObject(["a": 1]), 9, ["*": 3, "a": 8])
        guard case .write(_, _, let answer) = decide(operation, row) else { return #expect(Bool(false)) }
        #expect(answer.overwrites.map(\.field) == ["a"])
    }

    @Test("A device has seen what its own operation wrote")
    func ownChain() {
        let row = current(DataObject(["a": 1]), 9, ["*": 3, "a": 9])
        let outcome = decide(upsert(DataObject(["a": 2]), base: 5), row, seen: [9])
        #expect(outcome == .write(DataObject(["a": 2]), written: names("a"), Merge.Answer()))
    }

    @Test("The same values again make no row")
    func noOp() {
        let row = current(DataObject(["a": 1, "b": 2]), 9)
        #expect(decide(upsert(DataObject(["a": 1]), base: 9), row) == .nothing(Merge.Answer()))
    }

    @Test("An edit of a deleted record is refused; a delete of an edited one is applied")
    func deletes() {
        guard case .refuse(let refusal, let record) = decide(upsert(DataObject(["a": 1]), base: 5), current(nil, 7))
        else { return #expect(Bool(false)) }
        #expect(refusal.code == RejectionCode.recordDeleted)
        #expect(record == Verdict.Record(version: 7, data: nil))
        var delete = Operation(.delete, entity: "task", id: "t1")
        delete.baseVersion = 3
        let unseen = Merge.Answer(unseenSince: 3)
        #expect(decide(delete, current(DataObject(["a": 1]), 9)) == .write(nil, written: .all, unseen))
        #expect(decide(delete, current(DataObject(["a": 1]), 3)) == .write(nil, written: .all, Merge.Answer()))
        #expect(decide(delete, current(nil, 9)) == .nothing(Merge.Answer()))
        #expect(decide(delete, nil) == .nothing(Merge.Answer()))
        guard case .refuse = decide(upsert(DataObject(["a": 1]), base: 5), nil) else { return #expect(Bool(false)) }
    }

    @Test("An insert over a live record is concurrent in all its fields")
    func insertOverLive() {
        let row = current(DataObject(["a": 1, "b": 2]), 9)
        guard case .write(let data, _, let answer) = decide(upsert(DataObject(["a": 5]), base: nil), row)
        else { return #expect(Bool(false)) }
        #expect(data == DataObject(["a": 5, "b": 2]))
        #expect(answer.needsRecord)
        #expect(answer.overwrites.map(\.field) == ["a"])
    }

    @Test(
        "Server-authoritative fields are never taken from a device, under any policy",
        arguments: ConflictPolicy.allCases)
    func serverFields(policy: ConflictPolicy) {
        let bookmark = EntityDeclaration("bookmark", conflict: policy, serverFields: ["summary"])
        let row = current(DataObject(["title": "x", "summary": "good"]), 9)
        let edit = upsert(DataObject(["title": "y", "summary": "bad"]), base: 9)
        guard case .write(let data, _, let answer) = decide(edit, row, bookmark) else { return #expect(Bool(false)) }
        #expect(data == DataObject(["title": "y", "summary": "good"]))
        #expect(answer.status == .merged && answer.needsRecord)
        guard case .write(let served, _, _) = decide(edit, row, bookmark, service: true)
        else { return #expect(Bool(false)) }
        #expect(served?.value("summary") == "bad")
    }

    @Test("A new record's empty server field is no loss")
    func emptyServerField() {
        let bookmark = EntityDeclaration("bookmark", serverFields: ["summary"])
        let insert = upsert(DataObject(["title": "y", "summary": .null]), base: nil)
        guard case .write(let data, _, let answer) = decide(insert, nil, bookmark) else {
            return #expect(Bool(false))
        }
        #expect(data == DataObject(["title": "y"]))
        #expect(answer.losses.isEmpty)
    }
}

@Suite("Versions of fields")
struct FieldVersionsTests {
    @Test("cost nothing for a record that was never edited")
    func plain() {
        #expect(FieldVersions(common: 5).stored(rowVersion: 5) == nil)
        #expect(FieldVersions(stored: nil, rowVersion: 5)[Array("a".utf8)[...]] == 5)
    }

    @Test("come back from their bytes")
    func stored() {
        var versions = FieldVersions(common: 5)
        versions.set(Array("a".utf8)[...], to: 700)
        versions.set(Array("b".utf8)[...], to: 701)
        versions.set(Array("a".utf8)[...], to: 702)
        let again = FieldVersions(stored: versions.stored(rowVersion: 702), rowVersion: 702)
        #expect(again == versions)
        #expect(again[Array("a".utf8)[...]] == 702)
        #expect(again[Array("c".utf8)[...]] == 5)
    }
}
