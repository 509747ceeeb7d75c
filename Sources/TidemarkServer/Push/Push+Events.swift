import TidemarkCore
import TidemarkWire

// MARK: - Events: appended once, and never changed

extension Push {
    func appendEvent(
        _ operation: Operation, record: RecordID, declaration: EntityDeclaration, ruling: Ruling?
    ) throws -> (Verdict, isVerbatim: Bool) {
        if let existing = try writer.newest(entity: operation.entity, record: record) {
            // The same event again, under another key: a device that was restored from a backup, for example.
            let known = try existing.payload.map { try DataObject(stored: $0) }
            let names = access.isService ? [] : declaration.serverFields
            guard known?.leavingOutNull(names).sorted() == operation.fields.sorted() else {
                return refused(
                    RejectionCode.kindMismatch, "An event with this id is in the log already, and events never change.",
                    "Give every event an id of its own.")
            }
            return (Verdict(.applied, version: existing.version), false)
        }
        if case .refused(let refusal) = ruling?.judge(
            operation, record, current: nil, declaration: declaration, seen: [], at: moment)
        {
            return (Verdict(.rejected, refusal: refusal), false)
        }
        if !access.isService,
            let field = operation.fields.fields.map(operation.fields.nameString).first(where: declaration.isServerField)
        {
            return refused(
                RejectionCode.columnUnknown, "Devices do not write \(field).",
                "Leave it out, or attach the table with the column in --write.")
        }
        guard operation.fields.bytes.count <= server.limits.recordBytes else {
            return refused(
                RejectionCode.recordTooLarge, "An event may take \(server.limits.recordBytes) bytes.",
                "Keep large content apart from the event.")
        }
        cost.write(operation.fields.bytes.count)
        let version = try writer.append(
            NewRow(entity: operation.entity, record: record, kind: .event, payload: operation.fields.bytes), at: moment)
        return (Verdict(.applied, version: version), true)
    }
}

extension DataObject {
    /// The object without those of these fields that say nothing.
    func leavingOutNull(_ names: [String]) -> DataObject {
        guard !names.isEmpty else { return self }
        return filter { field in
            decoded(field) != .null || !names.contains { Identifier.isSameName($0, nameString(field)) }
        }
    }
}
