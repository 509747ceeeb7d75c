import TidemarkCore
import TidemarkWire

extension FuzzTarget {
    static let stored = [
        FuzzTarget("digest") { input in
            if let digest = read(input, { reader throws(JSONError) in try EntityDigest(from: &reader) }) {
                var writer = JSONWriter()
                digest.write(to: &writer)
                let again = try readBack(writer.bytes) { reader throws(JSONError) in try EntityDigest(from: &reader) }
                var second = JSONWriter()
                again.write(to: &second)
                // What every record has is told by its sum alone, whatever else was said of it.
                try hold(again.count == digest.count && again.records == digest.records, "other records come back")
                try hold(again.present.map(\.sum) == digest.present.map(\.sum), "other sums come back")
                let lacking = { (digest: EntityDigest) in digest.present.filter { $0.count != digest.count } }
                try hold(lacking(again) == lacking(digest), "other fields are lacked")
                try hold(second.bytes == writer.bytes, "a digest has two spellings")
            }
            guard let part = read(input, { reader throws(JSONError) in try DigestPart(from: &reader) }) else { return }
            var writer = JSONWriter()
            part.write(to: &writer)
            let again = try readBack(writer.bytes) { reader throws(JSONError) in try DigestPart(from: &reader) }
            try hold(again == part, "a part comes back as another one")
        },
        FuzzTarget("row") { input in
            // Two rows of a log: taking one for the other and back leaves nothing.
            let (first, second) = input.halves
            guard let (old, new) = objects(first, second) else { return }
            var digest = EntityDigest()
            try old.bytes.withUnsafeBytes { old in
                try new.bytes.withUnsafeBytes { new in
                    try digest.replace(3, nil, with: old)
                    let before = digest
                    try digest.replace(3, old, with: new)
                    var direct = EntityDigest()
                    try direct.replace(3, nil, with: new)
                    try hold(digest == direct, "a row replaced counts otherwise than the row itself")
                    try digest.replace(3, new, with: old)
                    try hold(digest == before, "a row replaced and put back counts otherwise")
                    try digest.replace(3, old, with: nil)
                    try hold(digest.isEmpty, "a row taken out leaves something")
                }
            }
            let overlaid = old.overlaid(with: new)
            for field in new.fields {
                try hold(overlaid.value(named: new.name(field)) == new.value(field), "a field is not overlaid")
            }
        },
        FuzzTarget("notes") { input in
            let bytes = Array(input)
            let versions = FieldVersions(stored: bytes, rowVersion: 7)
            let again = FieldVersions(stored: versions.stored(rowVersion: -1), rowVersion: 7)
            // No version is negative.
            try hold(again == versions || versions.common < 0, "versions of fields come back as others")
            let originals = Originals(stored: bytes)
            try hold(Originals(stored: originals.stored) == originals, "originals come back as others")
            if let digest = EntityDigest(stored: bytes) {
                try hold(EntityDigest(stored: digest.stored()) == digest, "a kept digest comes back as another one")
            }
            _ = LastState(stored: bytes)
            try clock(input)
        },
    ]
}

private func objects(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
) -> (DataObject, DataObject)? {
    guard let old = read(first, { reader throws(JSONError) in try DataObject(from: &reader) }),
        let new = read(second, { reader throws(JSONError) in try DataObject(from: &reader) })
    else { return nil }
    return (old, new)
}

/// Stamps that any clock may have given out, and those that a text spells.
private func clock(_ input: UnsafeRawBufferPointer) throws {
    if let stamp = EditStamp(text: input.text) {
        try hold(stamp.text.utf8.elementsEqual(input), "a stamp has two spellings")
    }
    var reader = ByteReader(Array(input))
    guard let packed = reader.integer(), let now = reader.integer(), let last = reader.integer() else { return }
    let stamp = EditStamp(packed: packed)
    try hold(EditStamp(text: stamp.text) == stamp, "a stamp comes back as another one")
    let believed = stamp.clamped(from: last, to: now).milliseconds
    try hold(believed <= EditStamp(milliseconds: now).milliseconds, "2099 is believed")
    var clock = HybridClock(last: stamp)
    let next = clock.tick(at: now)
    try hold(next > stamp || stamp.packed == .max, "a clock goes back")
    clock.receive(EditStamp(milliseconds: last))
    try hold(clock.last >= next, "a clock goes back for what it hears")
    _ = Timestamp.string(milliseconds: now)
}
