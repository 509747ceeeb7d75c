#if Server
    import ArgumentParser
    import Foundation
    import TidemarkSQLite
    import TidemarkServer

    struct BackupCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "backup",
            abstract: "Copy a store in a file, with its blobs, while a server runs on it.",
            discussion: """
                Makes the folder DESTINATION, in which the database has its own name and its blobs lie beside it. All of
                it is of one moment; what comes meanwhile is not in it, and unfinished uploads are left out. Blobs on
                the same file system take no room twice: they are hard links, and nobody writes to them. Owner and mode
                of a link are those of the store's own file, and whoever damages one damages both; --copy copies the
                bytes. The folder has its name once it is whole. The secret beside the store is not copied.

                To restore, start a server on the copy, or on a copy of it, with the secret of before. Devices that
                know more than the copy notice it and send again what they still have.

                Exit code 3: files of blobs were gone, and the copy has no rows of them.

                EXAMPLES
                  tidemark backup /backups/monday --store sqlite:/srv/sync.sqlite
                  tidemark blobs verify --rehash --store sqlite:/backups/monday/sync.sqlite --config tidemark.yaml
                  tidemark serve --store sqlite:/backups/monday/sync.sqlite --secret-file /srv/sync.sqlite.secret
                """)

        @Argument(help: ArgumentHelp("The folder to make.", valueName: "destination"), completion: .directory)
        var destination: String

        @Option(help: ArgumentHelp("The store: sqlite:PATH.", valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Flag(help: "Copy the bytes of all blobs, and make no hard links.")
        var copy = false

        @OptionGroup var output: ReportOptions

        func run() async throws {
            let settings = try Settings(flags: [.store: store, .config: config])
            let address = try StoreAddress(settings[.store])
            guard address.path != nil else {
                throw Failure(
                    "a store in PostgreSQL is backed up with PostgreSQL's own tools; its blobs are rows like all else",
                    hint: "pg_dump the database, or keep base backups with their WAL")
            }
            try address.checkFile()
            let opened = try address.open(partitions: settings[.partitions])
            guard let source = opened.log as? SQLiteStore else { throw Failure("the store is no file") }
            // The WAL is the running server's to fold in.
            defer { try? source.leave() }
            let backup: StoreBackup
            do { backup = try await makeCopy(of: source) } catch let refusal as BackupRefusal {
                throw Failure("no copy was made: \(refusal)", hint: "name a folder that is not there, in one that is")
            }
            try output.tell(BackupReport(backup, destination))
            if backup.missing > 0 { throw ExitCode(TidemarkTool.undecided) }
        }

        private func makeCopy(of source: SQLiteStore) async throws -> StoreBackup {
            let line = LiveLine(isJSON: output.json)
            defer { line.end() }
            return try await source.backUp(to: destination, isLinking: !copy) { backup in
                let known = backup.expected.counted("blob")
                line.show("copied \(backup.blobs) of \(known), \(Int(backup.bytes).asBytes)")
            }
        }
    }

    /// The report on a backup, for people and for programs.
    struct BackupReport: Codable, Hashable, Report {
        var destination: String
        var blobs: Int
        var bytes: Int64
        /// Blobs whose files were gone.
        var missing: Int

        init(_ backup: StoreBackup, _ destination: String) {
            self.destination = destination
            (blobs, bytes, missing) = (backup.blobs, backup.bytes, backup.missing)
        }

        var lines: [String] {
            let lines = ["copied the store to \(destination), with \(blobs.counted("blob")) of \(bytes) bytes"]
            guard missing > 0 else { return lines }
            return lines + ["warning: files of \(missing.counted("blob")) were gone; the copy has no rows of them"]
        }
    }
#endif
