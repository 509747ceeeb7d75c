import TidemarkCore
import TidemarkFuzzing
import TidemarkWire

// The fuzzer is built from the few files that it needs, without the client around them.
#if canImport(Tidemark)
    @testable import Tidemark
#endif

/// What a device reads from a server that may be anybody.
let answers = [
    FuzzTarget("answer") { input in
        guard let answer = try? Answer(body: Array(input)) else { return }
        for result in answer.results {
            let members = result.verdict.members()
            try hold(Verdict(members: members).members() == members, "a verdict comes back as another one")
        }
        guard let page = answer.page else { return }
        try hold(page.head >= 0, "a page of a version before all")
        try scan(page.changes, in: answer.body)
    },
    FuzzTarget("snapshot") { input in
        guard let page = try? SnapshotAnswer(body: Array(input)) else { return }
        try hold(page.version >= 0, "a page of a version before all")
        try scan(page.changes, in: page.body)
    },
    FuzzTarget("digests") { input in
        guard let answer = try? DigestAnswer(body: Array(input)) else { return }
        try hold(answer.version >= 0, "a digest of a version before all")
        for digest in answer.entities.values {
            for field in digest.fields { _ = digest.sum(of: field.name, lacking: 1) }
        }
    },
]

/// Every change of a page stands where the page says it does, and its fields are values or refused one by one.
private func scan(_ changes: Range<Int>, in body: [UInt8]) throws {
    try body.withUnsafeBytes { bytes in
        try hold(changes.lowerBound >= 0 && changes.upperBound <= bytes.count, "changes outside of the page")
        var reader = JSONReader(bytes, at: changes.lowerBound)
        try reader.enterArray()
        while try reader.nextElement() {
            // A change of a newer server's kind, or a hostile one, ends the page; nothing of it is applied.
            guard let change = try? IncomingChange.read(from: &reader) else { return }
            _ = (reader.string(change.entity), RecordID(reader.string(change.id)))
            if let data = change.data { try cells(at: data, in: bytes) }
            if let patches = change.patches {
                var reader = JSONReader(bytes, at: patches.lowerBound)
                _ = try? reader.readPatches()
            }
        }
        try hold(reader.index == changes.upperBound, "changes end somewhere else")
    }
}

private func cells(at data: Range<Int>, in bytes: UnsafeRawBufferPointer) throws {
    var reader = JSONReader(bytes, at: data.lowerBound)
    guard (try? reader.enterObject()) != nil else { return }
    while let name = try reader.nextMember() {
        let place = reader.index
        guard (try? reader.readCell()) == nil else { continue }
        var again = JSONReader(bytes, at: place)
        try hold((try? again.readValue()) == nil, "\(reader.string(name)) is a value, and is none")
        return
    }
    try hold(reader.index == data.upperBound, "a record ends somewhere else")
}
