import TidemarkCore
import TidemarkWire

/// Ids that the server assigns (`ids: server`).
struct Assignment {
    let writer: any ScopeWriter
    /// As the scope spells it.
    let entity: String

    /// The id of a new record. Another record has it already only where somebody went to great lengths to make two
    /// names of one id; the next is that one's own.
    func id(for name: TemporaryName) throws -> RecordID? {
        let owner = [name.principal, name.client, name.entity]
        var attempt = 0
        while let id = AssignedID.make(for: name.id, of: owner, attempt: attempt) {
            if try writer.assignment(of: id, entity: name.entity) == nil { return id }
            attempt += 1
        }
        return nil
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
