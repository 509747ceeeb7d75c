import TidemarkWire

extension TableSchema {
    /// A column that names bytes, as the file spells it.
    struct AttachmentColumn: Hashable, Sendable {
        var name: String
        var isAutomatic: Bool
        var sql: String { quoted(name) }
    }

    /// Returns the references in a row's attachments, given the cells of its columns outside the key.
    func references(in cells: [Cell]) -> [BlobReference] {
        attachments.compactMap { attachment in
            guard let index = dataIndex(attachment.name), case .text(let text) = cells[index].value else { return nil }
            return BlobReference(text)
        }
    }

    /// Takes in what the app says of its attachments.
    ///
    /// - Throws: `configuration_invalid` where there is no such column.
    mutating func add(_ attachments: [SyncedTable.Attachment]) throws {
        self.attachments = try attachments.map { attachment in
            guard let column = data.first(where: { $0.name.isSameName(as: attachment.column) }) else {
                throw SyncError(
                    .configurationInvalid, "Table '\(name)' has no column '\(attachment.column)' outside its key.",
                    hint: "Name the column that holds the references of attachments, as text.")
            }
            return AttachmentColumn(name: column.name, isAutomatic: attachment.download == .automatic)
        }
    }

    /// The index by which the rows that name some bytes are found.
    func attachmentIndex(_ column: AttachmentColumn) -> String {
        "\(Self.attachmentIndexPrefix)\(column.name)_\(name)"
    }

    static let attachmentIndexPrefix = "tidemark_attached_"
}
