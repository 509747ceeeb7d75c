import GRDB
import TidemarkWire

extension SyncedTable {
    /// A column whose texts name bytes that travel apart from the records (A12).
    public struct Attachment: Hashable, Sendable {
        /// How the bytes of records from elsewhere come to this device.
        public enum Download: String, Hashable, Sendable {
            /// By themselves, once a record names them.
            case automatic
            /// Where the app asks for them.
            case onDemand
        }

        /// The column, in whichever case.
        public var column: String
        /// How bytes from elsewhere come.
        public var download: Download

        /// A column that names bytes: each value is null or the text of a `BlobReference`.
        public static func attachment(_ column: String, download: Download = .onDemand) -> Attachment {
            Attachment(column: column, download: download)
        }

        /// Reads what a file has noted; another version's word counts as on demand.
        init(column: String, noted download: String) {
            self.init(column: column, download: Download(rawValue: download) ?? .onDemand)
        }

        private init(column: String, download: Download) { (self.column, self.download) = (column, download) }
    }

    /// The attachments of each table.
    static func attachments(of tables: [SyncedTable]) -> ByName<[Attachment]> {
        var attachments = ByName<[Attachment]>()
        for table in tables { attachments[table.name] = table.attachments }
        return attachments
    }

    /// Refuses attachments that the server does not know: it would collect the bytes of them, since nothing that it
    /// reads names those.
    func checkAttachments(_ declared: EntityDeclaration) throws {
        guard
            let stranger = attachments.first(where: { attachment in
                !declared.attachments.contains { $0.isSameName(as: attachment.column) }
            })
        else { return }
        throw SyncError(
            .declarationMismatch,
            "The app has attachments in '\(stranger.column)' of '\(name)', the server declares none there.",
            hint: "Add the column to the entity's `attachments` on the server, or take it out of the app's.")
    }
}

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
