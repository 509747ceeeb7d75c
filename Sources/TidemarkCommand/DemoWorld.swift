#if Server
    import Foundation
    import GRDB
    import Tidemark
    import TidemarkAsyncHTTPClient
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire

    /// The demo's stage: a server process, two devices that are nothing but files, and who may do what.
    struct DemoWorld {
        static let scope: Scope = "machine:1"

        let folder: URL
        let data: DemoData
        let server: DemoServer
        let token: String

        static func path(_ folder: URL, _ name: String) -> String {
            folder.appending(path: name).path(percentEncoded: false)
        }

        func path(_ name: String) -> String { Self.path(folder, name) }

        var url: String { server.url }

        /// Starts a server over a store in `folder`, and waits until it listens.
        static func start(in folder: URL, data: DemoData) async throws -> DemoWorld {
            let server = try await DemoServer(in: folder)
            do {
                let settings = try Settings(flags: [:], environment: [:])
                let key = try Secret.resolve(settings, store: StoreAddress(server.store), isLoopback: true)
                let token = try await TokenSigner(secret: key).token(
                    TokenClaims(
                        subject: "ada", expires: Date.now.addingTimeInterval(3600), scopes: ["machine:*": .readWrite]))
                return DemoWorld(folder: folder, data: data, server: server, token: token)
            } catch {
                await server.end()
                throw error
            }
        }

        /// A device's file, with the tables of the data and nothing in them, as an app would make it.
        func makeDevice(_ name: String) throws -> DatabaseQueue {
            let database = try open(name)
            try database.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA journal_mode = WAL") }
            try database.write { db in try data.create(db) }
            return database
        }

        func open(_ name: String) throws -> DatabaseQueue {
            var configuration = GRDB.Configuration()
            configuration.busyMode = .timeout(10)
            return try DatabaseQueue(path: path(name), configuration: configuration)
        }

        /// `tidemark sync` in a process of its own.
        func startSync(_ name: String, page: Int? = nil) throws -> ChildProcess {
            var arguments = ["sync", path(name), "--server", url, "--scope", Self.scope.name, "--json"]
            for table in data.tables { arguments += ["--table", table.name] }
            if let page { arguments += ["--page", "\(page)"] }
            return try ChildProcess(ChildProcess.executable, arguments, environment: ["TIDEMARK_TOKEN": token])
        }

        /// Syncs a device to the end. Refused edits are no failure here: the demo makes some on purpose.
        func sync(_ name: String) async throws -> SyncSummary {
            let (status, output, errors) = try await startSync(name).result()
            guard status == 0 || status == TidemarkTool.undecided,
                let summary = try? JSONDecoder().decode(SyncSummary.self, from: Data(output.utf8))
            else { throw Failure("\(name) could not be synced (exit code \(status))", hint: errors) }
            return summary
        }

        func status(_ name: String) async throws -> FileReport { try await FileReport(DeviceFile(path(name))) }
    }

    // MARK: - Who holds what

    /// All rows of all tables: `table/id` to the columns' values.
    typealias Rows = [String: [String: Value]]

    extension DemoWorld {
        /// The rows in a device's file.
        func rows(of name: String) throws -> Rows {
            var rows: Rows = [:]
            try open(name).read { db in
                for table in data.tables {
                    for row in try Row.fetchAll(db, sql: "SELECT * FROM \(table.name)") {
                        let id: String = row[table.key]
                        let pairs = table.columns.dropFirst().map { ($0, Value(row[$0] as DatabaseValue)) }
                        rows["\(table.name)/\(id)"] = Dictionary(pairs) { $1 }
                    }
                }
            }
            return rows
        }

        /// The rows on the server: everything that it gives to a device that begins from nothing.
        func rowsOfServer() async throws -> Rows {
            guard let root = URL(string: url) else { throw URLError(.badURL) }
            let transport = AsyncHTTPClientTransport(root) { token }
            var rows: Rows = [:]
            var since: String?
            while true {
                let query: [TransportRequest.QueryItem] =
                    [.init("scope", Self.scope.name), .init("limit", "1000")]
                    + (since.map { [.init("since", $0)] } ?? [])
                let answer = try await transport.send(TransportRequest(path: "/sync/changes", query: query))
                guard answer.status == 200 else { throw Failure("the server answers \(answer.status) to a pull") }
                let page = try answer.body.withUnsafeBytes { try DemoPage(from: $0) }
                for change in page.changes {
                    let key = "\(change.entity)/\(change.id)"
                    guard let fields = change.data else {
                        rows[key] = nil
                        continue
                    }
                    let columns = data.tables.first { $0.name == change.entity }?.columns.dropFirst() ?? []
                    rows[key] = Dictionary(columns.map { ($0, fields.value($0) ?? .null) }) { $1 }
                }
                since = page.nextSince
                if !page.hasMore { return rows }
            }
        }
    }

    extension Value {
        fileprivate init(_ value: DatabaseValue) {
            switch value.storage {
            case .null: self = .null
            case .int64(let integer): self = .integer(integer)
            case .double(let real): self = .real(real)
            case .string(let text): self = .text(text)
            case .blob(let data): self = .blob([UInt8](data))
            }
        }
    }

    /// A page of changes, as the wire has it.
    private struct DemoPage {
        struct Change {
            var entity = ""
            var id = ""
            var data: DataObject?
        }

        var changes: [Change] = []
        var nextSince = ""
        var hasMore = false

        init(from bytes: UnsafeRawBufferPointer) throws(JSONError) {
            var reader = JSONReader(bytes)
            try reader.enterObject()
            while let name = try reader.nextMember() {
                switch reader.string(name) {
                case "changes":
                    try reader.enterArray()
                    while try reader.nextElement() { changes.append(try Self.change(from: &reader)) }
                case "nextSince": nextSince = try reader.readString()
                case "hasMore": hasMore = try reader.readBool()
                default: try reader.skip()
                }
            }
        }

        private static func change(from reader: inout JSONReader) throws(JSONError) -> Change {
            var change = Change()
            try reader.enterObject()
            while let name = try reader.nextMember() {
                switch reader.string(name) {
                case "entity": change.entity = try reader.readString()
                case "id": change.id = try reader.readString()
                case "data": change.data = try DataObject(from: &reader)
                default: try reader.skip()
                }
            }
            return change
        }
    }
#endif
