import TidemarkCore
import TidemarkWire

/// Ids that the server assigns (`ids: server`): increasing numbers where the device's temporary id is a number, UUIDs
/// of version 7 where it is a text.
struct Assignment {
    let writer: any ScopeWriter
    /// As the scope spells it.
    let entity: String

    /// The name under which ids are counted and remembered over all scopes, each of which may spell it in its own way.
    private var shared: String { EntityKey(entity).text }

    /// Above this a number is no longer counted on from: some reader would not keep it exact.
    static let numberLimit: Int64 = 1 << 53 - 1
    /// How far above the last number a device may claim one that a lost history had assigned.
    static let claimReach: Int64 = 1_000_000

    /// A new id in the temporary one's form; `nil` where the numbers are used up.
    ///
    /// - Parameter claimed: what the record was called in a history that this store has lost. It gets that id again
    ///   where nobody else has it.
    func next(
        for temporary: RecordID, claimed: RecordID?, at moment: Int64, random: () -> UInt64
    ) throws -> RecordID? {
        // A temporary id is never anybody's own, whoever asks for it.
        let claimed = claimed.flatMap { TemporaryShape.matches($0.text) ? nil : $0 }
        guard TemporaryShape.integer(temporary.text) != nil else {
            if let claimed, try mayBeClaimed(claimed) { return claimed }
            var generator = UUIDv7()
            return RecordID(UUIDv7.text(generator.next(at: moment, random: (random(), random()))))
        }
        var number = try writer.lastNumber(of: shared)
        if let claimed, let wanted = TemporaryShape.integer(claimed.text), wanted > 0,
            wanted <= number + Self.claimReach, try mayBeClaimed(claimed)
        {
            try writer.setLastNumber(max(number, wanted), of: shared)
            return claimed
        }
        // Numbers may stand in the log that were not assigned: written by the server's own program, or before the
        // entity was declared so.
        while number < Self.numberLimit {
            number += 1
            guard let id = RecordID(String(number)), try isFree(id) else { continue }
            try writer.setLastNumber(number, of: shared)
            return id
        }
        return nil
    }

    /// Nobody was given the id, in whatever scope, and no record of it is in this one.
    private func isFree(_ id: RecordID) throws -> Bool {
        try writer.newest(entity: entity, record: id) == nil && writer.assignment(of: id, entity: shared) == nil
    }

    /// A record may be here before its insert has come back, because somebody else's edit of it did.
    private func mayBeClaimed(_ id: RecordID) throws -> Bool {
        guard try writer.assignment(of: id, entity: shared) == nil else { return false }
        guard let row = try writer.newest(entity: entity, record: id) else { return true }
        return Originals(stored: row.originals).common != .native
    }

    /// A record came in under a number of its own: no other gets that one, in whatever scope. One that is far ahead is
    /// only looked out for in its own scope, so that it does not use up all numbers before it.
    func pass(_ record: RecordID) throws {
        guard let number = TemporaryShape.integer(record.text), number > 0 else { return }
        let last = try writer.lastNumber(of: shared)
        guard number > last, number <= last + Self.claimReach else { return }
        try writer.setLastNumber(number, of: shared)
    }

    /// How an idmap's payload begins: by the entity's name.
    static func idmapOpening(of entity: String) -> [UInt8] {
        var writer = JSONWriter(capacity: entity.utf8.count + 16)
        writer.raw("\"entity\":")
        writer.string(entity)
        return writer.bytes
    }

    /// Tells the device itself, whatever becomes of this answer: the change that puts the id in the temporary one's
    /// place comes before the row.
    func announce(_ id: RecordID, for name: TemporaryName, at moment: Int64) throws -> Version {
        var members = JSONWriter(capacity: 160)
        members.raw(Self.idmapOpening(of: entity))
        members.member("tempId", name.id.text)
        members.member("id", id.text)
        members.member("clientId", name.client)
        guard let place = RecordID(String(writer.state.head + 1)) else { return writer.state.head }
        return try writer.append(NewRow(entity: "", record: place, kind: .idmap, payload: members.bytes), at: moment)
    }
}
