import GRDB
import TidemarkCore
import TidemarkWire

/// Records that are brought back to a server that has lost them, under their temporary ids: they may get other ids this
/// time, since somebody else may have theirs by now. What is brought back with them has to name them by the temporary
/// ones, or it would come to refer to somebody else's records.
struct ReturningNames {
    private let db: Database
    private let layout: Layout
    private let identity: Identity
    private var temporary: [RecordName: RecordID] = [:]

    /// `nil` where no table's ids are the server's.
    init?(_ db: Database, _ layout: Layout, _ declarations: Declarations) throws {
        guard let identity = try Identity(db, layout, declarations) else { return nil }
        (self.db, self.layout, self.identity) = (db, layout, identity)
    }

    /// An operation that is brought back, after those that came before it, with temporary ids in place: its own, and
    /// those that it refers to, which are returned too.
    mutating func named(_ operation: Operation, of entry: OutboxEntry) throws -> (Operation, [HeldName]) {
        var (named, held) = (operation, [HeldName]())
        if let shape = layout[entry.entity], operation.setsFields, !temporary.isEmpty {
            for reference in identity.references(in: shape) {
                var (probe, found) = (named, [HeldName]())
                probe.references = [reference]
                let resolution = try Resolution(
                    probe, isCandidate: { _ in true },
                    canonical: { [temporary] entity, id in
                        guard let name = temporary[RecordName(entity: entity, record: id.text)] else { return nil }
                        found.append(HeldName(entity: entity, temporary: name, place: reference.place))
                        return name
                    })
                guard !found.isEmpty else { continue }
                (named.id, named.fields) = (resolution.operation.id, resolution.operation.fields)
                if !named.references.contains(reference) { named.references.append(reference) }
                held += found
            }
        }
        let name = RecordName(entity: entry.entity, record: entry.record)
        if let own = operation.tempID, operation.setsFields {
            temporary[name] = own
        } else if let own = temporary[name] {
            (named.tempID, named.id) = (own, nil)
        }
        return (named, held)
    }

    /// Remembers beside the sealed operation what it means on this device, where the records have ids.
    func note(_ held: [HeldName], in entry: OutboxEntry, meaning operation: Operation, sealed: Operation) throws {
        guard sealed != operation else { return }
        try Query(db, "UPDATE tidemark_operation SET resolved = ?2 WHERE id = ?1")
            .execute([.integer(entry.id), .blob(operation.sealedMembers())])
        try Outbox.note(db, held, in: entry.id)
    }
}
