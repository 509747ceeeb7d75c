#if Server
    import ArgumentParser
    import Foundation
    import TidemarkServer
    import TidemarkWire

    struct BlobListCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the blobs of a scope.",
            discussion: """
                Each has its hash, its bytes, and when a record was last seen to name it, or it was sent or asked for.
                They stand by hash; --after goes on behind one. Unfinished uploads are counted. A server may run
                meanwhile.

                EXAMPLES
                  tidemark blobs list --store sqlite:sync.sqlite --scope user:17
                  tidemark blobs list --store sqlite:sync.sqlite --scope user:17 --limit 1000 --json
                """)

        @Option(help: ArgumentHelp(StoreAddress.help, valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Option(help: ArgumentHelp("The scope; a sub-scope's blobs are its scope's.", valueName: "name"))
        var scope: String

        @Option(help: ArgumentHelp("At most so many, 1 to 10000.", valueName: "count"))
        var limit = 100

        @Option(help: ArgumentHelp("Those behind this hash.", valueName: "hash"))
        var after: String?

        @OptionGroup var output: ReportOptions

        func validate() throws {
            guard 1...10_000 ~= limit else { throw ValidationError("--limit is a number from 1 to 10000.") }
            guard after.map({ BlobReference.isHash($0) }) ?? true else {
                throw ValidationError("--after is a hash: 64 lowercase hexadecimal digits.")
            }
        }

        func run() async throws {
            let scope = try Scope(argument: scope)
            let opened = try OpenStore(store: store, config: config)
            defer { opened.close() }
            let page = try await SyncServer(store: opened.log).listBlobs(in: scope, after: after, limit: limit)
            try output.tell(BlobListReport(page, of: scope.parent))
        }
    }

    /// Blobs of a scope, for people and for programs.
    struct BlobListReport: Codable, Hashable, Report {
        struct Line: Codable, Hashable {
            var hash: String
            var size: Int64
            var seen: Date
        }

        var scope: String
        var blobs: [Line]
        /// All blobs of the scope, shown or not, and its unfinished uploads.
        var total, parts: Int
        /// Bytes of the blobs, and of what is being sent.
        var bytes: Int64
        /// Where the next page goes on.
        var next: String?

        init(_ page: BlobPage, of scope: Scope) {
            self.scope = scope.name
            blobs = page.blobs.map { Line(hash: $0.hash, size: $0.size, seen: $0.seen) }
            (total, parts, bytes) = (page.total.blobs, page.total.parts, page.total.bytes)
            next = page.next
        }

        var lines: [String] {
            let width = blobs.map { String($0.size).count }.max() ?? 0
            var lines = blobs.map { blob in
                let size = String(blob.size)
                let lead = String(repeating: " ", count: width - size.count)
                return "\(blob.hash)  \(lead)\(size)  \(blob.seen.formatted(.iso8601))"
            }
            if let next { lines.append("… and more: --after \(next)") }
            lines.append(
                "\(total.counted("blob")) and \(parts.counted("unfinished upload")) in scope \(scope), \(bytes) bytes")
            return lines
        }
    }
#endif
