import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("The versions of a row's fields, and what they tell a reader of an older row (A9)")
struct FieldVersionTests {
    private func name(_ text: String) -> ArraySlice<UInt8> { Array(text.utf8)[...] }

    private func written(_ versions: FieldVersions, after version: Version) -> Set<String>? {
        versions.written(after: version).map { Set($0.map { String(decoding: $0, as: UTF8.self) }) }
    }

    /// As a store returns it.
    private func reread(_ versions: FieldVersions, rowVersion: Version) -> FieldVersions {
        FieldVersions(stored: versions.stored(rowVersion: rowVersion), rowVersion: rowVersion)
    }

    @Test("Fields that were written after a version; none can be named for a row that was made after it")
    func written() {
        var versions = FieldVersions(common: 5)
        versions.set(name("a"), to: 7)
        versions.set(name("b"), to: 9)
        versions.set(name("a"), to: 11)
        for versions in [versions, reread(versions, rowVersion: 11)] {
            #expect(written(versions, after: 4) == nil)
            #expect(written(versions, after: 5) == ["a", "b"])
            #expect(written(versions, after: 9) == ["a"])
            #expect(written(versions, after: 11) == [])
        }
    }

    @Test("A row that was written whole since says nothing to a reader of before", arguments: [Int64(0), 77])
    func whole(packed: Int64) {
        let stamp = EditStamp(packed: packed)
        var versions = FieldVersions(common: 5, stamp: stamp)
        versions.set(name("a"), to: 7, stamp: stamp)
        versions.noteWhole(at: 9)
        versions.noteWhole(at: 8)
        versions.set(name("b"), to: 12, stamp: stamp)
        for versions in [versions, reread(versions, rowVersion: 12)] {
            #expect(written(versions, after: 8) == nil)
            #expect(written(versions, after: 9) == ["b"])
            // What decides about edits is as it was.
            #expect(versions[name("a")] == 7 && versions[name("c")] == 5)
            #expect(versions.stamp(of: name("b")) == stamp)
        }
    }

    @Test("A row of which nothing but that is known keeps it, and one without costs no bytes")
    func bytes() {
        var versions = FieldVersions(common: 5)
        #expect(versions.stored(rowVersion: 5) == nil)
        versions.noteWhole(at: 9)
        #expect(reread(versions, rowVersion: 9).wholeSince == 9)
        #expect(reread(versions, rowVersion: 9).common == 5)
        #expect(FieldVersions(stored: nil, rowVersion: 9).wholeSince == 9)
    }
}
