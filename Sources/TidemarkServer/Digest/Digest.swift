import TidemarkCore
import TidemarkWire

extension SyncServer {
    /// `GET /sync/digest`: what the live records add up to, for a device to compare with its own tables (F2).
    package func digest(_ query: DigestQuery, access: Access) async throws -> [UInt8] {
        try access.require(.read, in: query.scope)
        let asked = try query.entity.map { entity in try DigestRange(query, entity: entity, limits: self.limits) }
        let (key, limits) = (store.tokenKey, self.limits)
        let leftOut = leftOut(from: access)
        return try await readScope(query.scope, for: access.principal) { reader in
            let history = reader.state.history
            let version =
                try query.at.map { token in
                    try Checkpoint(token: token, scope: query.scope, key: key).resumed(in: history).complete
                } ?? history.head
            guard version >= history.sweepFloor else {
                throw Self.unavailable("Rows superseded since version \(version) are gone.")
            }
            var writer = JSONWriter(capacity: 1024)
            writer.raw("{\"scope\":")
            writer.string(query.scope.name)
            writer.memberName("at")
            if let at = query.at { writer.string(at) } else { writer.raw("null") }
            writer.member("epoch", history.epoch(of: history.head).text)
            writer.member("version", version)
            if var range = asked {
                if let reason = leftOut[EntityKey(range.entity)]?.reason {
                    throw Problem(.notFound, "\(range.entity) has no digest: \(reason).")
                }
                range.entity = self.spelling(of: range.entity, in: reader.state)
                try DigestScan(reader: reader, range: range, version: version).write(to: &writer)
            } else {
                try ScopeDigest(reader: reader, version: version, leftOut: leftOut, limits: limits)
                    .write(to: &writer)
            }
            writer.raw("}")
            return writer.bytes
        }
    }

    /// Entities that cannot be compared, and why: events have no present state, and of what is only pushed a device
    /// holds its own part.
    private func leftOut(from access: Access) -> [EntityKey: LeftOut] {
        let withheld = withheld(from: access)
        var leftOut: [EntityKey: LeftOut] = [:]
        for entity in declarations.entities {
            let isWithheld = withheld.contains(entity.name)
            guard isWithheld || entity.kind == .events else { continue }
            leftOut[EntityKey(entity.name)] = LeftOut(name: entity.name, reason: isWithheld ? "push" : "events")
        }
        return leftOut
    }

    static func unavailable(_ detail: String) -> Problem { Problem(.digestUnavailable, detail) }
}

/// An entity without a digest, as it is told.
private struct LeftOut: Hashable, Sendable {
    let name: String
    let reason: String
}

/// The digests of all entities of a scope as of a version: those that are kept, computed back where it is an older one.
private struct ScopeDigest {
    let reader: any ScopeReader
    let version: Version
    let leftOut: [EntityKey: LeftOut]
    let limits: Limits

    private struct Present {
        let name: String
        var digest: EntityDigest
    }

    func write(to writer: inout JSONWriter) throws {
        var digests: [EntityKey: Present] = [:]
        for name in reader.state.entities.all where leftOut[EntityKey(name)] == nil {
            guard let kept = try reader.digest(of: name) else { continue }
            digests[EntityKey(name)] = Present(name: name, digest: try EntityDigest(kept: kept))
        }
        if version < reader.state.head { try rewind(&digests) }
        writer.raw(",\"entities\":{")
        let present = digests.values.filter { !$0.digest.isEmpty }
        for (index, entity) in present.sorted(by: { Self.precedes($0.name, $1.name) }).enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(entity.name)
            writer.raw(":")
            entity.digest.write(to: &writer)
        }
        writer.raw("},\"leftOut\":{")
        for (index, entity) in leftOut.values.sorted(by: { Self.precedes($0.name, $1.name) }).enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(entity.name)
            writer.raw(":")
            writer.string(entity.reason)
        }
        writer.raw("}")
    }

    private static func precedes(_ left: String, _ right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }

    /// Takes the digests back to `version`: takes out the records as they are, and takes in the records as they were.
    private func rewind(_ digests: inout [EntityKey: Present]) throws {
        var changed: [(entity: EntityKey, name: String, record: RecordID)] = []
        var budget = limits.digestBytes
        var outcome: Result<Void, any Error> = .success(())
        try reader.changes(after: version, through: reader.state.head, tombstonesAfter: 0) { change in
            guard change.kind.supersedes else { return true }
            let name = String(decoding: change.entity, as: UTF8.self)
            let entity = EntityKey(name)
            outcome = Result {
                guard changed.count < limits.digestRewind else {
                    throw unavailable("More than \(limits.digestRewind) records have")
                }
                if change.kind == .upsert {
                    try spend(&budget, change.payload.count)
                    let number = CellHash.record(CellHash.prefix(entity: name), id: change.record)
                    try digests[entity]?.digest.replace(number, change.payload, with: nil)
                }
            }
            // Ids were checked when they came in, so what the store returns is one.
            guard case .success = outcome, let record = RecordID(String(decoding: change.record, as: UTF8.self)) else {
                return false
            }
            if digests[entity] != nil { changed.append((entity, name, record)) }
            return true
        }
        try outcome.get()
        for change in changed {
            guard let then = try reader.row(entity: change.name, record: change.record, at: version)?.payload else {
                continue
            }
            try spend(&budget, then.count)
            var id = change.record.text
            let number = id.withUTF8 { CellHash.record(entity: change.name, id: UnsafeRawBufferPointer($0)) }
            try then.withUnsafeBytes { try digests[change.entity]?.digest.replace(number, nil, with: $0) }
        }
    }

    private func spend(_ budget: inout Int, _ bytes: Int) throws(Problem) {
        guard budget > 0 else { throw unavailable("More than \(limits.digestBytes) bytes have") }
        budget -= bytes
    }

    private func unavailable(_ what: String) -> Problem {
        SyncServer.unavailable("\(what) changed since version \(version).")
    }
}
