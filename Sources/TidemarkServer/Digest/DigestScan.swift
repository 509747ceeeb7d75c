import TidemarkCore
import TidemarkWire

/// A key range of one entity, cut into parts, as it was asked for.
struct DigestRange: Hashable, Sendable {
    /// As it was asked for, then as the scope spells it.
    var entity: String
    let after: RecordID?
    let through: RecordID?
    let every: Int
    let fields: [[UInt8]]
    let scanLimit: Int
    let partLimit: Int
    let byteLimit: Int

    init(_ query: DigestQuery, entity: String, limits: Limits) throws(Problem) {
        guard Identifier.isEntity(entity) else {
            throw Problem(.invalidIdentifier, "In `entity`: a name that is not of the allowed form.")
        }
        guard query.fields.count <= limits.namedFields else {
            throw Problem(
                .limitOutOfRange, "\(query.fields.count) fields; one request may name \(limits.namedFields).")
        }
        let every = query.every ?? Int64(limits.digestScan)
        guard (1...Int64(limits.digestScan)).contains(every) else {
            throw Problem(.limitOutOfRange, "`every` is \(every); it may be from 1 to \(limits.digestScan).")
        }
        self.entity = entity
        self.every = Int(every)
        after = try Self.record(query.after, "after")
        through = try Self.record(query.through, "through")
        fields = query.fields.map(DataObject.canonical)
        (scanLimit, partLimit, byteLimit) = (limits.digestScan, limits.digestParts, limits.digestBytes)
    }

    private static func record(_ text: String?, _ member: String) throws(Problem) -> RecordID? {
        guard let text else { return nil }
        guard let record = RecordID(text) else {
            throw Problem(.invalidIdentifier, "In `\(member)`: a name that is not of the allowed form.")
        }
        return record
    }
}

/// Sums a key range part by part, in one pass over its rows. A range that is too long for one answer goes on behind its
/// last part.
struct DigestScan {
    let reader: any ScopeReader
    let range: DigestRange
    let version: Version

    func write(to writer: inout JSONWriter) throws {
        let prefix = CellHash.prefix(entity: range.entity)
        var parts: [DigestPart] = []
        var part = EntityDigest()
        var last: String?
        var (scanned, bytes) = (0, 0)
        var isCut = false
        var failure: (any Error)?
        try reader.records(of: range.entity, above: 0, at: version, after: range.after) { change in
            if let through = range.through, through.text.utf8.precedes(change.record) { return false }
            guard change.kind == .upsert else { return true }
            isCut = scanned == range.scanLimit || parts.count == range.partLimit || bytes >= range.byteLimit
            if isCut { return false }
            scanned += 1
            bytes += change.payload.count
            do {
                try part.replace(CellHash.record(prefix, id: change.record), nil, with: change.payload)
            } catch {
                failure = error
                return false
            }
            last = String(decoding: change.record, as: UTF8.self)
            if part.count == range.every {
                parts.append(DigestPart(through: last, part, fields: range.fields))
                part = EntityDigest()
            }
            return true
        }
        if let failure { throw failure }
        if !isCut {
            // The last part ends where the range ends, so that nothing lies between it and the next.
            parts.append(DigestPart(through: range.through?.text, part, fields: range.fields))
        } else if part.count > 0 {
            parts.append(DigestPart(through: last, part, fields: range.fields))
        }
        writer.member("entity", range.entity)
        writer.raw(",\"parts\":[")
        for (index, part) in parts.enumerated() {
            if index > 0 { writer.raw(",") }
            part.write(to: &writer)
        }
        writer.raw("],\"hasMore\":")
        writer.bool(isCut)
    }
}

extension String.UTF8View {
    fileprivate func precedes(_ bytes: UnsafeRawBufferPointer) -> Bool { lexicographicallyPrecedes(bytes) }
}
