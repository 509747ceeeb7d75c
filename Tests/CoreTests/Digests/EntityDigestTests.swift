import Testing

@testable import TidemarkCore
@testable import TidemarkWire

@Suite("Digests add up")
struct EntityDigestTests {
    @Test(
        "SipHash-2-4 gives its published values, in one piece and in any two",
        arguments: [
            (0, 0x726f_db47_dd0e_0e31), (1, 0x74f8_39c5_93dc_67fd), (7, 0xab02_00f5_8b01_d137),
            (8, 0x93f5_f579_9a93_2462), (15, 0xa129_ca61_49be_45e5), (63, 0x958a_324c_eb06_4572),
        ] as [(Int, UInt64)])
    func sipHash(count: Int, expected: UInt64) {
        let bytes = (0..<count).map { UInt8($0) }
        for cut in 0...count {
            var hash = SipHash()
            hash.update(bytes[..<cut])
            let copy = hash
            hash.update(bytes[cut...])
            #expect(hash.finish() == expected)
            var other = copy
            for byte in bytes[cut...] { other.update(byte: byte) }
            #expect(other.finish() == expected)
        }
    }

    private func record(_ id: String, _ entity: String = "task") -> UInt64 {
        var id = id
        return id.withUTF8 { CellHash.record(CellHash.prefix(entity: entity), id: UnsafeRawBufferPointer($0)) }
    }

    private func replace(_ digest: inout EntityDigest, _ id: String, _ old: String?, _ new: String?) throws {
        let (old, new) = (old.map { Array($0.utf8) }, new.map { Array($0.utf8) })
        func with(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) throws -> Void) throws {
            guard let bytes else { return try body(nil) }
            try bytes.withUnsafeBytes { try body($0) }
        }
        try with(old) { old in try with(new) { new in try digest.replace(record(id), old, with: new) } }
    }

    private static let rows = [
        ("t1", #"{"title":"Buy milk","done":0,"weight":1.5}"#), ("t2", #"{"title":"a\nb","done":null,"weight":-0.0}"#),
        ("é", #"{"title":"é"}"#),
    ]

    /// The vector of Documentation/Protocol.md; another implementation made it.
    @Test("The documented records give the documented sums, on the wire too")
    func vector() throws {
        var digest = EntityDigest()
        for (id, data) in Self.rows { try replace(&digest, id, nil, data) }
        #expect(record("t1") == 0x4872_3a5e_1a1b_ea2d)
        let title = CellHash.prefix(field: "title".utf8)
        #expect(Array("\"Buy milk\"".utf8).withUnsafeBytes { CellHash.content(title, $0) } == 0xb3a6_878f_044c_7cb7)
        var writer = JSONWriter()
        digest.write(to: &writer)
        #expect(
            String(decoding: writer.bytes, as: UTF8.self) == #"""
                {"count":3,"records":"b727f7b790525277","fields":{\#
                "done":{"sum":"9899b58d331cbe1b","count":2,"having":"9c4ba4a0299209b6"},\#
                "title":{"sum":"462664c1b6730b8c"},\#
                "weight":{"sum":"5080f80fbc865113","count":2,"having":"9c4ba4a0299209b6"}}}
                """#)
        let back = try writer.bytes.withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            return try EntityDigest(from: &reader)
        }
        #expect(back == digest)
        #expect(EntityDigest(stored: digest.stored()) == digest)
        #expect(EntityDigest(stored: Array(digest.stored().dropLast())) == nil)
    }

    @Test("Edits, deletes and records made anew leave the sums of what is there, in whatever order fields stand")
    func replaced() throws {
        var digest = EntityDigest()
        for (id, data) in Self.rows { try replace(&digest, id, nil, data) }
        try replace(
            &digest, "t1", Self.rows[0].1, #"{"title":"x","done":0,"weight":1.5,"more":{"$int":"9223372036854775807"}}"#
        )
        try replace(
            &digest, "t1", #"{"title":"x","done":0,"weight":1.5,"more":{"$int":"9223372036854775807"}}"#,
            #"{"weight":1.5,"done":1}"#)
        try replace(&digest, "t2", Self.rows[1].1, nil)
        try replace(&digest, "é", Self.rows[2].1, #"{"title":null}"#)
        try replace(&digest, "é", nil, nil)
        var fresh = EntityDigest()
        try replace(&fresh, "é", nil, #"{"title":null}"#)
        try replace(&fresh, "t1", nil, #"{"done":1,"weight":1.5}"#)
        #expect(digest == fresh)
        #expect(digest.present.map(\.name) == ["done", "title", "weight"].map { Array($0.utf8) })
        try replace(&digest, "é", #"{"title":null}"#, nil)
        try replace(&digest, "t1", #"{"done":1,"weight":1.5}"#, nil)
        #expect(digest == EntityDigest())
        #expect(digest.isEmpty)
    }

    @Test("A value, its field, its record and their pairing all count; NULL counts nothing")
    func told() throws {
        func sum(_ rows: [(String, String)]) throws -> EntityDigest {
            var digest = EntityDigest()
            for (id, data) in rows { try replace(&digest, id, nil, data) }
            return digest
        }
        let base = try sum([("a", #"{"x":1,"y":2}"#), ("b", #"{"x":2,"y":1}"#)])
        for other in [
            [("a", #"{"x":2,"y":2}"#), ("b", #"{"x":1,"y":1}"#)], [("a", #"{"x":1,"y":2}"#), ("c", #"{"x":2,"y":1}"#)],
            [("a", #"{"x":1.0,"y":2}"#), ("b", #"{"x":2,"y":1}"#)],
            [("a", #"{"x":2,"y":1}"#), ("b", #"{"x":1,"y":2}"#)],
            [("a", #"{"x":"1","y":2}"#), ("b", #"{"x":2,"y":1}"#)],
        ] { #expect(try sum(other) != base) }
        #expect(try sum([("a", #"{"x":null}"#)])["x".utf8]?.sum == 0)
        #expect(try sum([("a", #"{"x":null}"#)]) != sum([("a", "{}")]))
    }

    @Test("A record that lacks a field counts as if it had the default")
    func lacking() throws {
        var some = EntityDigest()
        var all = EntityDigest()
        for index in 0..<20 {
            try replace(&all, "t\(index)", nil, #"{"mood":"calm"}"#)
            try replace(&some, "t\(index)", nil, index % 3 == 0 ? #"{"mood":"calm"}"# : "{}")
        }
        let content = Array("\"calm\"".utf8).withUnsafeBytes {
            CellHash.content(CellHash.prefix(field: "mood".utf8), $0)
        }
        #expect(some.sum(of: "mood".utf8, lacking: content) == all["mood".utf8]?.sum)
        #expect(some.isLacked("mood".utf8) && !all.isLacked("mood".utf8))
        #expect(all.sum(of: "other".utf8, lacking: content) == content &* all.records)
    }

    @Test("Fields beyond the limit are not told apart, and records still are")
    func overfull() throws {
        var digest = EntityDigest()
        for index in 0..<EntityDigest.fieldLimit { try replace(&digest, "t\(index)", nil, #"{"f\#(index)":1}"#) }
        #expect(!digest.isOverfull)
        // Fields that nobody has any more make room.
        try replace(&digest, "t0", #"{"f0":1}"#, #"{"g0":1}"#)
        #expect(!digest.isOverfull && digest.present.count == EntityDigest.fieldLimit)
        try replace(&digest, "u", nil, #"{"one":1,"more":2}"#)
        #expect(digest.isOverfull)
        try replace(&digest, "u", #"{"one":1,"more":2}"#, nil)
        #expect(digest.count == Int64(EntityDigest.fieldLimit))
        #expect(EntityDigest(stored: digest.stored()) == digest)
        var writer = JSONWriter()
        digest.write(to: &writer)
        #expect(!String(decoding: writer.bytes, as: UTF8.self).contains("fields"))
    }
}
