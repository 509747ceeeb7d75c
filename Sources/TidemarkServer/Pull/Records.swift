import TidemarkCore
package import TidemarkWire

/// Records that a caller asks for by name (Protocol.md).
package struct NamedRecords: Hashable, Sendable {
    package var scope: Scope
    package var entity: String
    package var ids: [String]
    /// `field:entity`: the record that this field of a named one refers to comes too.
    package var follow: [String] = []
    /// The caller's checkpoint: where its history is not this scope's, nothing is told of records by name either.
    package var since: String?

    package init(of entity: String, in scope: Scope, ids: [String]) {
        self.entity = entity
        self.scope = scope
        self.ids = ids
    }
}

extension SyncServer {
    /// `GET /sync/records/{entity}`: the named records and those that they refer to, as of one version (D4).
    package func records(_ named: NamedRecords, access: Access) async throws -> [UInt8] {
        try access.require(.read, in: named.scope)
        let records = try check(named)
        let withheld = withheld(from: access)
        guard !withheld.contains(named.entity) else {
            throw Problem(.notFound, "Records of \(named.entity) are for the operator's own programs.")
        }
        let follow = try check(follow: named.follow).filter { !withheld.contains($0.entity) }
        let (key, byteBudget) = (store.tokenKey, limits.pageBytes)
        return try await readScope(named.scope, for: access.principal) { reader in
            let history = reader.state.history
            if let since = named.since {
                _ = try Checkpoint(token: since, scope: named.scope, key: key).resumed(in: history)
            }
            var answer = RecordAnswer(
                reader: reader, rows: RowSplicer(limit: records.count * (1 + follow.count), byteBudget: byteBudget))
            let (named, follow) = self.spelled(named, follow, in: reader.state)
            return try answer.write(named, records, follow)
        }
    }

    private func check(_ named: NamedRecords) throws(Problem) -> [RecordID] {
        guard Identifier.isEntity(named.entity) else {
            throw Problem(.invalidIdentifier, "The entity's name is not of the allowed form.")
        }
        guard !named.ids.isEmpty else { throw Problem(.malformedRequest, "In `id`: a required member is missing.") }
        guard named.ids.count <= limits.namedRecords else {
            throw Problem(.limitOutOfRange, "\(named.ids.count) ids; one request may name \(limits.namedRecords).")
        }
        var records: [RecordID] = []
        for text in named.ids {
            guard let record = RecordID(text) else {
                throw Problem(.invalidIdentifier, "In `id`: a name that is not of the allowed form.")
            }
            records.append(record)
        }
        return records
    }

    private func spelled(
        _ named: NamedRecords, _ follow: [Reference], in state: ScopeState
    ) -> (NamedRecords, [Reference]) {
        var named = named
        named.entity = spelling(of: named.entity, in: state)
        return (named, follow.map { Reference(field: $0.field, entity: spelling(of: $0.entity, in: state)) })
    }

    private func check(follow: [String]) throws(Problem) -> [Reference] {
        guard follow.count <= limits.followedFields else {
            throw Problem(
                .limitOutOfRange, "\(follow.count) fields; one request may follow \(limits.followedFields).")
        }
        var references: [Reference] = []
        for text in follow {
            guard let (field, entity) = Self.halves(of: text), !field.isEmpty else {
                throw Problem(.malformedRequest, "In `follow`: a field, a colon and an entity were expected.")
            }
            guard Identifier.isEntity(entity) else {
                throw Problem(.invalidIdentifier, "In `follow`: a name that is not of the allowed form.")
            }
            references.append(Reference(field: DataObject.canonical(field), entity: entity))
        }
        return references
    }

    /// The parts before and behind the last colon. In either name `\:` is a colon, and `\\` a backslash.
    private static func halves(of text: String) -> (field: String, entity: String)? {
        var halves: [String] = [""]
        var scalars = text.unicodeScalars[...]
        while let scalar = scalars.popFirst() {
            if scalar == "\\", let next = scalars.first, next == ":" || next == "\\" {
                scalars.removeFirst()
                halves[halves.count - 1].unicodeScalars.append(next)
            } else if scalar == ":" {
                halves.append("")
            } else {
                halves[halves.count - 1].unicodeScalars.append(scalar)
            }
        }
        guard halves.count > 1, let entity = halves.popLast() else { return nil }
        return (halves.joined(separator: ":"), entity)
    }
}

/// A field whose value is the id of a record of another entity.
private struct Reference: Sendable {
    /// In its canonical spelling.
    var field: [UInt8]
    var entity: String

    /// The record that a payload refers to: text as it is, an integer in decimal; anything else refers to none.
    func target(in payload: UnsafeRawBufferPointer) -> RecordID? {
        var reader = JSONReader(payload)
        do {
            try reader.enterObject()
            while let name = try reader.nextMember() {
                guard Identifier.isSameName(payload[name.range], field) else {
                    try reader.skip()
                    continue
                }
                switch try reader.readValue() {
                case .text(let text): return RecordID(text)
                case .integer(let integer): return RecordID(String(integer))
                case .null, .real, .blob: return nil
                }
            }
        } catch {
            // A row that the server did not write itself; there is nothing to follow.
        }
        return nil
    }
}

/// The answer as it grows: named records in the order in which they were asked for, then those that they refer to.
private struct RecordAnswer {
    let reader: any ScopeReader
    var rows: RowSplicer

    private struct Name: Hashable {
        var entity: String
        var record: RecordID

        static func == (lhs: Name, rhs: Name) -> Bool {
            lhs.entity.hasSameBytes(as: rhs.entity) && lhs.record == rhs.record
        }
    }

    mutating func write(_ named: NamedRecords, _ records: [RecordID], _ follow: [Reference]) throws -> [UInt8] {
        rows.writer.raw("{\"scope\":")
        rows.writer.string(named.scope.name)
        rows.writer.memberName("since")
        if let since = named.since { rows.writer.string(since) } else { rows.writer.raw("null") }
        rows.writer.member("epoch", Checkpoint.beginning(of: reader.state.history).epoch.text)
        rows.writer.raw(",\"changes\":[")
        var seen: Set<Name> = []
        var referred: [Name] = []
        for record in records where seen.insert(Name(entity: named.entity, record: record)).inserted {
            referred += try append(named.entity, record, follow)
        }
        for name in referred where seen.insert(name).inserted { _ = try append(name.entity, name.record, []) }
        rows.writer.raw("],\"hasMore\":")
        rows.writer.bool(rows.isFull)
        rows.writer.member("head", reader.state.head)
        rows.writer.raw("}")
        return rows.writer.bytes
    }

    private mutating func append(_ entity: String, _ record: RecordID, _ follow: [Reference]) throws -> [Name] {
        guard !rows.isFull else { return [] }
        // Taken out while the store's closure fills it: a second reference would copy the page so far.
        var rows = RowSplicer(limit: 0, byteBudget: 0)
        swap(&rows, &self.rows)
        defer { self.rows = rows }
        var isKnown = false
        var referred: [Name] = []
        try reader.newest(entity: entity, record: record) { change in
            isKnown = true
            guard rows.hasRoom(for: change) else { return }
            rows.append(change)
            guard change.kind == .upsert else { return }
            referred = follow.compactMap { reference in
                reference.target(in: change.payload).map { Name(entity: reference.entity, record: $0) }
            }
        }
        if !isKnown, rows.hasRoom(bytes: 0) { rows.appendAbsent(entity, record, asOf: reader.state.head) }
        return referred
    }
}
