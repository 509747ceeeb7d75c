import TidemarkCore
package import TidemarkWire

/// What is asked of a digest (PROTOCOL.md 7): of a whole scope, or of one entity's key range in parts.
package struct DigestQuery: Hashable, Sendable {
    package var scope: Scope
    /// The checkpoint as of whose `complete` is compared; absent: the newest version.
    package var at: String?
    package var entity: String?
    /// Records behind this id…
    package var after: String?
    /// …up to and with this one.
    package var through: String?
    /// Records of one part.
    package var every: Int64?
    /// The fields that are summed.
    package var fields: [String] = []

    package init(of scope: Scope) { self.scope = scope }
}

extension SyncServer {
    /// `GET /sync/digest`: what the live records add up to, for a device to compare with its own tables (F2).
    package func digest(_ query: DigestQuery, access: Access) async throws -> [UInt8] {
        try access.require(.read, in: query.scope)
        let range = try query.entity.map { entity in try DigestRange(query, entity: entity, limits: limits) }
        let (key, rewind) = (store.tokenKey, limits.digestRewind)
        let leftOut = leftOut(from: access)
        return try await store.read(query.scope) { reader in
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
            if let range {
                guard leftOut[range.entity] == nil else {
                    throw Problem(.notFound, "\(range.entity) has no digest: \(leftOut[range.entity] ?? "").")
                }
                try DigestScan(reader: reader, range: range, version: version).write(to: &writer)
            } else {
                try ScopeDigest(reader: reader, version: version, leftOut: leftOut, rewindLimit: rewind)
                    .write(to: &writer)
            }
            writer.raw("}")
            return writer.bytes
        }
    }

    /// Entities that cannot be compared, and why: events have no present state, and of what is only pushed a device
    /// holds its own part.
    private func leftOut(from access: Access) -> [String: String] {
        let withheld = withheld(from: access)
        var reasons: [String: String] = [:]
        for entity in declarations.entities {
            if entity.kind == .events { reasons[entity.name] = "events" }
            if withheld.contains(entity.name) { reasons[entity.name] = "push" }
        }
        return reasons
    }

    static func unavailable(_ detail: String) -> Problem { Problem(.digestUnavailable, detail) }
}

/// The digests of all entities of a scope as of a version: those that are kept, computed back where it is an older one.
private struct ScopeDigest {
    let reader: any ScopeReader
    let version: Version
    let leftOut: [String: String]
    let rewindLimit: Int

    func write(to writer: inout JSONWriter) throws {
        var digests: [String: EntityDigest] = [:]
        for entity in try reader.entities() where leftOut[entity] == nil {
            digests[entity] = try reader.digest(of: entity).map { try EntityDigest(kept: $0) }
        }
        if version < reader.state.head { try rewind(&digests) }
        digests = digests.filter { !$0.value.isEmpty }
        writer.raw(",\"entities\":{")
        for (index, entity) in digests.keys.sorted().enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(entity)
            writer.raw(":")
            digests[entity]?.write(to: &writer)
        }
        writer.raw("},\"leftOut\":{")
        for (index, entity) in leftOut.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(entity.key)
            writer.raw(":")
            writer.string(entity.value)
        }
        writer.raw("}")
    }

    /// Takes out what records have become since, and takes in what they were.
    private func rewind(_ digests: inout [String: EntityDigest]) throws {
        var changed: [(entity: String, record: RecordID, payload: [UInt8]?)] = []
        var isTooLong = false
        try reader.changes(after: version, through: reader.state.head, tombstonesAfter: 0) { change in
            guard change.kind.supersedes else { return true }
            isTooLong = changed.count >= rewindLimit
            // Ids were checked when they came in, so what the store gives back is one.
            guard !isTooLong, let record = RecordID(String(decoding: change.record, as: UTF8.self)) else {
                return false
            }
            let payload = change.kind == .upsert ? Array(change.payload) : nil
            changed.append((String(decoding: change.entity, as: UTF8.self), record, payload))
            return true
        }
        guard !isTooLong else {
            throw SyncServer.unavailable("More than \(rewindLimit) records have changed since version \(version).")
        }
        for change in changed {
            guard var digest = digests.removeValue(forKey: change.entity) else { continue }
            defer { digests[change.entity] = digest }
            let former = try reader.row(entity: change.entity, record: change.record, at: version)?.payload
            var id = change.record.text
            let number = id.withUTF8 {
                CellHash.record(CellHash.prefix(entity: change.entity), id: UnsafeRawBufferPointer($0))
            }
            try change.payload.withBytes { now in
                try former.withBytes { then in try digest.replace(number, now, with: then) }
            }
        }
    }
}

extension [UInt8]? {
    fileprivate func withBytes(_ body: (UnsafeRawBufferPointer?) throws -> Void) throws {
        guard let self else { return try body(nil) }
        try self.withUnsafeBytes { try body($0) }
    }
}
