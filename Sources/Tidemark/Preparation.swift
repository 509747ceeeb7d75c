import GRDB
import TidemarkWire

/// What all scopes of an engine share: the tables as they stand in the file, and what the operator declared.
actor Preparation {
    let file: AppFile
    let transport: any Transport
    private let tables: [SyncedTable]
    private let resolved: [(name: String, rule: SyncedTable.ScopeRule)]
    private let scopes: [Scope]
    private(set) var layout: Layout?
    private var declarations: Declarations?
    /// The fingerprint that belongs to `declarations`, and the one heard last.
    private var known: String?
    private var heard: String?
    private let turn = Turn()

    init(writer: any DatabaseWriter, transport: any Transport, tables: [SyncedTable], scopes: [Scope]) throws {
        file = AppFile(writer: writer)
        self.transport = transport
        self.tables = tables
        self.scopes = scopes
        resolved = try SyncedTable.resolve(tables, scopes: scopes)
    }

    /// Installs capture, or looks whether a migration has changed the schema since.
    func install() async throws -> Layout {
        let (resolved, scopes) = (resolved, scopes)
        if let layout, layout.schemaVersion == (try await file.read { try Installation.schemaVersion($0) }) {
            return layout
        }
        let now = wallClockMilliseconds()
        let changes = try await file.read { db in try RuleChange.find(db, resolved, scopes, now: now) }
        for change in changes { try await file.writeWithoutTransaction(at: .rules) { db in try change.run(db) } }
        let tables = tables
        let found = try await file.write(at: .install) { db in
            let layout = try Installation.install(db, tables: resolved, scopes: scopes).adding(tables, db)
            try SyncedTable.note(db, tables)
            try SyncedTable.noteInstall(db)
            return layout
        }
        layout = found
        return found
    }

    /// Hears the fingerprint that every answer carries.
    func heard(fingerprint: String?) { heard = fingerprint ?? heard }

    /// What it remembers beside the file.
    var memory: String { "\(layout != nil) \(declarations != nil) \(known == heard)" }

    /// What the operator declared. Asks the server where that is not known or has changed.
    func declarations(clientID: String, scope: Scope) async throws -> Declarations {
        if let declarations, known == heard { return declarations }
        // Several scopes want to know at once, and one request answers all.
        await turn.take()
        defer { turn.end() }
        if let declarations, known == heard { return declarations }
        let found = try await fetch(clientID: clientID, scope: scope)
        declarations = found
        return found
    }

    private func fetch(clientID: String, scope: Scope) async throws -> Declarations {
        let response: TransportResponse
        do {
            response = try await transport.send(
                TransportRequest(path: "/sync/declarations", headers: Exchange.headers(clientID: clientID)))
        } catch { throw Failure(error, scope: scope) }
        guard response.status == 200 else { throw Failure(response, scope: scope) }
        let declarations: Declarations
        do { declarations = try response.body.withUnsafeBytes { try Declarations(from: $0) } } catch {
            throw Failure(error, scope: scope)
        }
        for table in tables { try table.check(declarations.entity(table.name)) }
        try layout?.checkIDs(declarations)
        let fingerprint = response.header(ProtocolVersion.declarationsHeader)
        known = fingerprint
        heard = fingerprint
        return declarations
    }
}
