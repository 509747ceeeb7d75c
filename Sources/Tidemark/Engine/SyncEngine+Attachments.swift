import TidemarkCore

extension SyncEngine {
    /// The files that records name: to add, to show and to fetch them. Where the engine was given no folder, its
    /// `async` calls throw `configuration_invalid`, and the others find no file.
    public nonisolated var attachments: Attachments { Attachments(attachmentRunner) }

    /// Passes on what the app knows of its network.
    func adaptAttachments() async {
        await attachmentRunner?.adapt(
            isMetered: scheduler.conditions.isMetered, backoff: configuration.backoff.rule,
            longestWait: adapted.longestWait.milliseconds)
    }
}

extension AttachmentRunner {
    /// - Throws: `configuration_invalid` where tables have attachments, and there is no folder for them.
    static func make(
        _ tables: [SyncedTable], _ attachments: AttachmentConfiguration?, _ configuration: SyncConfiguration,
        _ file: AppFile, _ schemaCache: SchemaCache
    ) throws -> AttachmentRunner? {
        if let attachments {
            return AttachmentRunner(
                file: file, configuration: attachments, schemaCache: schemaCache, backoff: configuration.backoff.rule,
                longestWait: configuration.longestWait.milliseconds)
        }
        // The command line moves no files: it knows no folder of the app's.
        guard !configuration.isCommand, let table = tables.first(where: { !$0.attachments.isEmpty }) else { return nil }
        throw SyncError(
            .configurationInvalid, "Table '\(table.name)' has attachments, and the engine has no folder for them.",
            hint: "Give it `attachments: AttachmentConfiguration(folder: …)`.")
    }
}
