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
