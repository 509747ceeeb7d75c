import TidemarkWire

extension EntityDeclaration {
    /// Why fields may not come into the log: an attachment among them is neither null nor a reference to a blob (A12).
    func refusal(ofAttachmentsIn fields: DataObject) -> Verdict.Refusal? {
        for (name, value) in values(ofAttachmentsIn: fields) {
            if value == .null { continue }
            if case .text(let text) = value, BlobReference(text) != nil { continue }
            return Verdict.Refusal(
                code: RejectionCode.attachmentInvalid, detail: "The attachment \(name) holds no reference to a blob.",
                hint: "Set it to null, or to sha256:HASH:SIZE of the bytes that are sent to /sync/blobs.")
        }
        return nil
    }

    /// The blobs that a record's fields name.
    func references(in fields: DataObject) -> [BlobReference] {
        values(ofAttachmentsIn: fields).compactMap { _, value in
            guard case .text(let text) = value else { return nil }
            return BlobReference(text)
        }
    }

    /// The attachments among some fields; the value is `nil` where it is no column's value.
    private func values(ofAttachmentsIn fields: DataObject) -> [(name: String, value: Value?)] {
        guard !attachments.isEmpty else { return [] }
        return fields.fields.compactMap { field in
            let name = fields.nameString(field)
            guard attachments.contains(where: { Identifier.isSameName($0, name) }) else { return nil }
            return (name, fields.decoded(field))
        }
    }
}
