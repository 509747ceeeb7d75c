import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("A record's memory of a loss")
struct OriginalsTests {
    private func name(_ text: String) -> ArraySlice<UInt8> { DataObject.canonical(text)[...] }

    @Test("Nothing, where nothing was lost: it costs no bytes")
    func nothing() {
        var originals = Originals()
        originals.noteAll(.native)
        originals.note([name("a"), name("b")], .native)
        #expect(originals.isEmpty && originals.stored == nil)
        #expect(Originals(stored: nil) == Originals())
    }

    @Test("comes back from its bytes")
    func stored() {
        var originals = Originals()
        originals.noteAll(.nobody)
        originals.note([name("a"), name("b")], .original(700))
        originals.note([name("b")], .native)
        originals.noteDeletion(650)
        originals.noteDeletion(600)
        let again = Originals(stored: originals.stored)
        #expect(again == originals)
        #expect(again.mark(of: name("a")) == .original(700))
        #expect(again.mark(of: name("b")) == .native)
        #expect(again.mark(of: name("c")) == .nobody)
        #expect(again.deletion == 650)
    }

    @Test("An edit of this history takes a field's mark away, and a record made anew all of them, but for its deletion")
    func native() {
        var originals = Originals()
        originals.note([name("a")], .original(7))
        originals.note([name("a")], .native)
        #expect(originals.isEmpty)
        originals.note([name("a")], .original(7))
        originals.noteDeletion(5)
        originals.noteAll(.native)
        #expect(originals.mark(of: name("a")) == .native)
        #expect(originals.deletion == 5)
    }
}

@Suite("How a lost operation meets the record")
struct ReplayMergeTests {
    private let history = ScopeHistory(
        head: 30, sweepFloor: 0, retentionFloor: 0,
        incarnations: [ScopeHistory.Incarnation(id: 1, start: 0), ScopeHistory.Incarnation(id: 2, start: 10)])
    private let lost = Epoch(
        id: 3, start: 12, ancestors: [Epoch.Ancestor(of: ScopeHistory.Incarnation(id: 1, start: 0))])

    private func course(
        _ kind: Operation.Kind = .upsert, _ fields: DataObject = .empty, base: Version?, original: Version?,
        on current: Merge.Current?
    ) -> ReplayMerge.Course {
        var operation = Operation(kind, entity: "task", id: "t")
        operation.fields = fields
        operation.baseVersion = base
        operation.epoch = lost.text
        let original = Operation.Original(epoch: lost.text, version: original)
        return ReplayMerge(original, of: operation, in: history).course(
            of: operation, on: current, declaration: EntityDeclaration("task"))
    }

    private func live(_ version: Version, _ data: DataObject, _ mark: Originals.Mark = .native) -> Merge.Current {
        var current = Merge.Current(version: version, data: data, fieldVersions: FieldVersions(common: version))
        current.originals.noteAll(mark)
        return current
    }

    private func edit(_ course: ReplayMerge.Course) -> Operation? {
        if case .goesOn(let operation) = course { operation } else { nil }
    }

    @Test("A base above what is shared counts as that; what the edit had seen in its own history counts as seen")
    func bases() {
        let old = edit(course(.upsert, DataObject(["a": 1]), base: 20, original: 21, on: live(9, DataObject(["a": 0]))))
        #expect(old?.baseVersion == 10)
        #expect(old?.base(ofField: DataObject.canonical("a")[...]) == 9, "as good as the row")
        let seen = edit(
            course(
                .upsert, DataObject(["a": 1]), base: 20, original: 21, on: live(15, DataObject(["a": 0]), .original(18))
            ))
        #expect(seen?.base(ofField: DataObject.canonical("a")[...]) == 15)
        let unseen = edit(
            course(
                .upsert, DataObject(["a": 1]), base: 17, original: 21, on: live(15, DataObject(["a": 0]), .original(18))
            ))
        #expect(unseen?.base(ofField: DataObject.canonical("a")[...]) == 10)
    }

    @Test("A lower original never beats a higher one, nor itself; one without a version beats all that had one")
    func order() {
        let row = live(15, DataObject(["a": 0]), .original(18))
        let change = DataObject(["a": 1])
        #expect(course(.upsert, change, base: 9, original: 17, on: row) == .stands)
        #expect(course(.upsert, change, base: 9, original: 18, on: row) == .stands)
        #expect(edit(course(.upsert, change, base: 9, original: 19, on: row))?.fields == change)
        #expect(edit(course(.upsert, change, base: 9, original: nil, on: row))?.fields == change)
        // What was written here since the loss is later than what was lost.
        #expect(course(.upsert, change, base: 9, original: 90, on: live(15, DataObject(["a": 0]))) == .stands)
        #expect(
            edit(course(.upsert, change, base: 9, original: nil, on: live(15, DataObject(["a": 0]))))?.fields == change)
    }

    @Test("Of an unknown record a deletion is written, a lost edit begins it, and an old one is left to the policy")
    func unknown() {
        #expect(course(.delete, base: 20, original: 21, on: nil) == .write(nil))
        guard case .begins(let begun) = course(.upsert, DataObject(["a": 1]), base: 20, original: 21, on: nil)
        else { return #expect(Bool(false)) }
        #expect(begun.baseVersion == nil)
        #expect(edit(course(.upsert, DataObject(["a": 1]), base: 9, original: 21, on: nil))?.baseVersion == 9)
    }

    @Test("A deletion leaves what was written after it, and goes where something later has deleted")
    func deletions() {
        var mixed = live(15, DataObject(["a": 0, "b": 0]))
        mixed.fieldVersions = FieldVersions(common: 9)
        mixed.originals = Originals()
        mixed.originals.note([DataObject.canonical("b")[...]], .original(22))
        #expect(course(.delete, base: 9, original: 21, on: mixed) == .write(DataObject(["b": 0])))
        #expect(course(.delete, base: 9, original: 21, on: live(15, DataObject(["a": 0]))) == .stands)
        #expect(edit(course(.delete, base: 9, original: 21, on: live(9, DataObject(["a": 0]))))?.baseVersion == 9)
        let tombstone = Merge.Current(version: 15, data: nil, fieldVersions: FieldVersions(common: 15))
        #expect(course(.delete, base: 9, original: 21, on: tombstone) == .stands)
        #expect(course(.upsert, DataObject(["a": 1]), base: nil, original: 21, on: tombstone) == .stands)
        var older = tombstone
        older.originals.noteAll(.original(20))
        older.originals.noteDeletion(20)
        #expect(course(.delete, base: 9, original: 21, on: older) == .write(nil))
        #expect(edit(course(.upsert, DataObject(["a": 1]), base: nil, original: 21, on: older)) != nil)
        #expect(course(.upsert, DataObject(["a": 1]), base: nil, original: 19, on: older) == .stands)
    }

    @Test("A version that is still in this history is known as such")
    func held() {
        let known = Epoch(id: 1, start: 0).text
        #expect(history.contains(Operation.Original(epoch: known, version: 10)))
        #expect(!history.contains(Operation.Original(epoch: known, version: 11)))
        #expect(!history.contains(Operation.Original(epoch: known, version: nil)))
        #expect(!history.contains(Operation.Original(epoch: lost.text, version: 13)))
        #expect(!history.contains(Operation.Original(epoch: "nonsense", version: 1)))
        // Epoch 0 precedes the first write. Its name is not that of the history which was lost.
        #expect(!history.contains(Operation.Original(epoch: Epoch(id: 0, start: 0).text, version: 1)))
    }
}

@Suite("Notes on single fields, few and many")
struct ManyFieldTests {
    private func name(_ index: Int) -> ArraySlice<UInt8> { DataObject.canonical("f\(index)")[...] }

    @Test("versions keep their fields apart, and come back from their bytes", arguments: [3, 16, 17, 40])
    func versions(count: Int) {
        var versions = FieldVersions(common: 7)
        for index in 0..<count { versions.set(name(index), to: Version(100 + index)) }
        for index in stride(from: 0, to: count, by: 2) { versions.set(name(index), to: Version(200 + index)) }
        let again = FieldVersions(stored: versions.stored(rowVersion: 500), rowVersion: 500)
        #expect(again == versions)
        for index in 0..<count {
            #expect(again[name(index)] == Version((index.isMultiple(of: 2) ? 200 : 100) + index))
        }
        #expect(again[name(count)] == 7)
    }

    @Test("marks are taken away again, and come back from their bytes", arguments: [3, 16, 17, 40])
    func marks(count: Int) {
        var originals = Originals()
        originals.note((0..<count).map(name), .original(5))
        originals.note((1..<count).map(name), .original(9))
        originals.note((2..<count).map(name), .native)
        #expect(originals.mark(of: name(0)) == .original(5) && originals.mark(of: name(1)) == .original(9))
        #expect((2...count).allSatisfy { originals.mark(of: name($0)) == .native })
        #expect(Originals(stored: originals.stored) == originals)
        #expect(originals.stored?.count ?? 0 < 40)
    }
}
