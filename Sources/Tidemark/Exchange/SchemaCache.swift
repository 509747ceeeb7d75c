import GRDB
package import TidemarkWire

/// The state that all scopes of an engine share: the file's tables as they stand, and the operator's declarations.
actor SchemaCache {
    let file: AppFile
    let transport: ReleasableTransport
    let measures = MeasureBook()
    private let tables: [SyncedTable]
    /// The tables as the app gave them, each with its rule.
    let resolved: [(name: String, rule: SyncedTable.ScopeRule)]
    private let scopes: [Scope]
    private let isCommand: Bool
    /// The scopes, and the sub-scopes that the tables are in.
    let followed: [Scope]
    private(set) var schema: SyncSchema?
    /// Whether a table waits for the server's word before it goes into another sub-scope.
    private var hasDeferred = false
    private var declarations: Declarations?
    /// The declarations that the file kept when it was opened, or keeps since.
    private var kept: KeptDeclarations?
    /// Tables whose ids the operator has the server assign, as last heard.
    private var assigned: [String] = []
    /// The fingerprint that belongs to `declarations`, and the one heard last.
    private var known: String?
    private var heard: String?
    private let mutex = AsyncMutex()

    init(
        file: AppFile, transport: any Transport, tables: [SyncedTable], scopes: [Scope], isCommand: Bool = false
    ) throws {
        self.file = file
        self.transport = ReleasableTransport(transport, measures: measures)
        self.tables = tables
        self.scopes = scopes
        self.isCommand = isCommand
        resolved = try SyncedTable.resolve(tables, scopes: scopes)
        followed = resolved.followed(scopes)
    }

    /// The names of the tables, as the app gave them.
    nonisolated var tableNames: [String] { tables.map(\.name) }

    /// Installs capture, or looks whether a migration has changed the schema since.
    func install() async throws -> SyncSchema {
        // Signing out may have taken the library out of the file.
        try transport.current()
        if let schema, schema.schemaVersion == (try await file.read { try SyncSchema.version($0) }) {
            return schema
        }
        try await checkInstalled()
        let now = wallClockMilliseconds()
        let (named, scopes, followed) = (tables, scopes, followed)
        let known = declarations
        let ((tables, hasDeferred), checked) = try await file.read { db in
            let tables = try SyncedTable.deferringSubscopes(
                of: SyncedTable.spelled(named, db), db
            ) { try known ?? KeptDeclarations.read(db)?.declarations }
            return (tables, try SyncSchema.version(db))
        }
        self.hasDeferred = hasDeferred
        let changes = try await file.read { db in
            try RuleChange.find(db, SyncedTable.resolve(tables, scopes: scopes), followed, now: now)
        }
        for change in changes { try await file.writeWithoutTransaction(at: .rules) { db in try change.run(db) } }
        let (found, assigned, kept) = try await file.write(at: .install) {
            [changesets = file.changesets, isCommand] db in
            try changesets?.check(db)
            let resolved = try SyncedTable.resolve(tables, scopes: scopes)
            let schema = try Installation.install(
                db, tables: resolved, scopes: followed, attachments: SyncedTable.attachments(of: tables),
                checked: checked
            ).adding(tables, db)
            try SyncedTable.writeNotes(db, tables)
            if !isCommand { try SyncedTable.noteInstall(db) }
            return (schema, try AssignedIDs.read(db), try KeptDeclarations.read(db))
        }
        (schema, self.assigned, self.kept) = (found, assigned, kept)
        return found
    }

    /// A library that was here and is gone was taken out on purpose, by this program or another one.
    private func checkInstalled() async throws {
        guard schema != nil, try await !file.read({ try LibrarySchema.isInstalled($0) }) else { return }
        throw SyncError(
            .engineDisconnected, "Somebody has taken the library out of the file.",
            hint: "Make an engine to sync the file again.")
    }

    /// Whether the engine has signed out of a file whose tables it knows and that stands as it left it: calls that only
    /// read it need no installation.
    func isLeftStanding() async throws -> Bool {
        guard transport.isDisconnected, let version = schema?.schemaVersion else { return false }
        return try await file.read { try LibrarySchema.isInstalled($0) && SyncSchema.version($0) == version }
    }

    /// Warnings about the schema, for the app's developer.
    var warnings: [String] { schema?.warnings(assigned: Set(assigned.map(SQLName.init))) ?? [] }

    /// Remembers whose ids the server assigns, so that a process which cannot ask it warns in the same way.
    private func noteAssignedIDs(_ declarations: Declarations) async throws {
        let found = declarations.entities.filter { $0.ids == .server }.map(\.name)
        // Only where it makes a difference to what is said.
        let isAsked = schema?.shapes.contains { $0.remarks.contains(.countedIDs(table: $0.name)) } ?? false
        guard isAsked, found != assigned else { return }
        try await file.write(at: .rules) { db in try AssignedIDs.write(db, found) }
        assigned = found
    }

    /// Hears the fingerprint that every answer carries.
    func heard(fingerprint: String?) { heard = fingerprint ?? heard }

    /// The cache's state outside the file.
    var memory: String { "\(schema != nil) \(declarations != nil) \(known == heard)" }

    /// Returns the operator's declarations. Asks the server where they are not known or have changed.
    func declarations(clientID: String, scope: Scope) async throws -> Declarations {
        if let declarations, known == heard { return declarations }
        // Drivers of several scopes ask at once, and one request answers all.
        await mutex.lock()
        defer { mutex.unlock() }
        if let declarations, known == heard { return declarations }
        let found = try await fetch(clientID: clientID, scope: scope)
        declarations = found
        // The declarations agree with the app, and so the tables may go where it has them.
        if hasDeferred { schema = nil }
        return found
    }

    /// Keeps the document for the next start, where the server has named it.
    private func keep(_ declarations: Declarations, _ response: TransportResponse) async throws {
        guard let tag = response.header("ETag"), tag != kept?.tag else { return }
        try await file.write(at: .rules) { db in try KeptDeclarations.write(db, response.body, tag: tag) }
        kept = KeptDeclarations(tag: tag, declarations: declarations)
    }

    private func fetch(clientID: String, scope: Scope) async throws -> Declarations {
        let kept = kept
        var headers = TransportRequest.headers(clientID: clientID)
        headers["If-None-Match"] = kept?.tag
        let response: TransportResponse
        do {
            response = try await transport.send(TransportRequest(path: "/sync/declarations", headers: headers))
        } catch { throw Failure(error, scope: scope) }
        let declarations: Declarations
        if response.status == 304, let kept {
            declarations = kept.declarations
        } else {
            guard response.status == 200 else { throw Failure(response, scope: scope) }
            do { declarations = try response.body.withUnsafeBytes { try Declarations(from: $0) } } catch {
                throw Failure(error, scope: scope)
            }
            do { try await keep(declarations, response) } catch { throw Failure.database(error, scope: scope) }
        }
        for table in tables { try table.check(declarations.entity(table.name)) }
        try schema?.checkIDs(declarations)
        do { try await noteAssignedIDs(declarations) } catch { throw Failure.database(error, scope: scope) }
        let fingerprint = response.header(ProtocolVersion.declarationsHeader)
        known = fingerprint
        heard = fingerprint
        return declarations
    }
}

extension Declarations {
    /// Fetches a server's declarations, for a tool that has no tables yet; `nil` where it does not give them now.
    package static func fetched(by transport: any Transport) async -> Declarations? {
        let request = TransportRequest(path: "/sync/declarations", headers: [:])
        guard let response = try? await transport.send(request), response.status == 200 else { return nil }
        return try? response.body.withUnsafeBytes { try Declarations(from: $0) }
    }
}
