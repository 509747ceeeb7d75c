public import GRDB
import TidemarkCore
public import TidemarkWire

/// Keeps tables of the app's own database in sync with a server and with the user's other devices.
///
/// The app reads and writes as ever; every edit, also one of another process, is captured in its own transaction, sent
/// when the network allows, and what changed elsewhere is fetched.
///
/// ```swift
/// let sync = try SyncEngine(
///     for: database, tables: [.table(Project.self), .table(Todo.self)], scopes: ["workspace:123"],
///     transport: HTTPTransport(serverURL) { try await session.accessToken() })
/// let running = Task { try await sync.run() }
/// ```
///
/// It is an actor of its own: any task may call it, and no call holds up the caller's thread for the file or the
/// network. What its calls throw is ``SyncError``, also where they only read the file. A `DatabaseError` of GRDB's
/// comes from what is the app's own: a schema that does not take a row, or a block that the app gave.
public actor SyncEngine {
    let file: AppFile
    /// How eagerly the engine works; see ``use(_:)``.
    public private(set) var configuration: SyncConfiguration
    /// The conditions of ``adapt(to:)``.
    var scheduler = SyncScheduler()
    /// The configuration, as far as the conditions let it be.
    var adapted: SyncConfiguration { configuration.adapted(by: scheduler) }
    let schemaCache: SchemaCache
    /// The app's scopes, with the sub-scopes that its tables are in.
    var scopes: [Scope] { schemaCache.followed }
    private let onConflict: ConflictHandler?
    private let board = StatusBoard<SyncStatus>()
    let progressBoard = StatusBoard<SyncProgress>()
    var meter = ProgressMeter()
    let rejectedBoard = StatusBoard<[RejectedOperation]>()
    let conflictBoard = StatusBoard<[Conflict]>()
    let shadowWatch = ShadowWatch()
    private(set) var drivers: [ScopeDriver] = []
    /// Whether ``run()`` is under way, also while another engine syncs the file.
    var isRunning = false
    /// Which engine syncs the file; `nil` while this one does not run.
    var lease: EngineLease?
    /// Whether this one runs, and another engine, mostly one of another process, syncs the file.
    var isWaiting = false
    /// How often the app has called for a round, and how many of these calls are answered.
    var roundsWanted = 0
    var roundsDone = 0
    /// Whether such a round is under way.
    var isInRound = false
    /// Raised where an edit was made here, or the lease is to be looked at.
    let written = WakeSignal()
    /// Raised where the stream of nudges may have to be another one, or need not wait any more.
    let listening = WakeSignal()
    /// Whether a stream of nudges is open.
    var isListening = false
    /// The scopes that the server does not let this device into, as last heard.
    var refused: Set<Scope> = []
    /// The scopes that have stopped until the app or the operator acts.
    var stopped: Set<Scope> = []
    /// Drivers that have come since this engine began to sync.
    var newcomers: AsyncStream<ScopeDriver>.Continuation?
    /// Scopes that are here since something holds them, with how many holds there are; at 0 they wait to go.
    var holds: [Scope: Int] = [:]
    let holdMutex = AsyncMutex()
    /// Scopes that somebody is about to take off the device.
    var evicting: Set<Scope> = []
    /// Moves the bytes of attachments; `nil` where there is no folder for them.
    let attachmentRunner: AttachmentRunner?

    /// Makes an engine. Nothing happens yet: no file is touched, no request is sent.
    ///
    /// - Parameters:
    ///   - writer: the app's own `DatabasePool` or `DatabaseQueue`.
    ///   - tables: the tables to keep in sync; their names are the entities' names on the wire.
    ///   - scopes: the parts of the data that this device follows.
    ///   - transport: what carries requests, such as ``HTTPTransport``.
    ///   - configuration: how eagerly it works.
    ///   - attachments: where the bytes of attachments are kept, if tables have any.
    ///   - onConflict: decides open conflicts, mostly of entities whose policy is `manual`; without it they wait in the
    ///     list.
    ///   - onChangeset: hears what each answer has changed, as a patchset for other databases.
    /// - Throws: ``SyncError`` where tables and scopes do not fit together, or `sessions_unavailable` where there is
    ///   an `onChangeset` and the SQLite library makes no patchsets.
    public init(
        for writer: any DatabaseWriter, tables: [SyncedTable], scopes: [Scope], transport: any Transport,
        configuration: SyncConfiguration = SyncConfiguration(), attachments: AttachmentConfiguration? = nil,
        onConflict: ConflictHandler? = nil, onChangeset: ChangesetHandler? = nil
    ) throws {
        file = AppFile(writer: writer, changesets: try onChangeset.map { try ChangesetTap(tables, $0) })
        self.onConflict = onConflict
        self.configuration = configuration
        schemaCache = try SchemaCache(
            file: file, transport: transport, tables: tables, scopes: scopes, isCommand: configuration.isCommand)
        attachmentRunner = try AttachmentRunner.make(tables, attachments, configuration, file, schemaCache)
    }

    // MARK: Syncing

    /// Puts the capture triggers into the file, or brings them up to date after a migration. ``run()`` and
    /// ``syncNow()`` do it by themselves; call it where edits must be captured before either.
    ///
    /// Rows that are in the tables when capture is first installed are held against the server's: those that it lacks
    /// are sent, the others give way.
    /// - Throws: ``SyncError``: `table_unsupported` where a table cannot be synced as it is declared,
    ///   `configuration_invalid` where tables and scopes do not fit together, `schema_unsupported` where a newer
    ///   version has written the file, `database_failed` where the file cannot be read or written.
    public func install() async throws {
        do { _ = try await schemaCache.install() } catch let error as DatabaseError {
            throw Failure.database(error, scope: scopes[0]).error
        }
        guard drivers.isEmpty else { return }
        for scope in scopes where restriction?.contains(scope.parent) ?? true { addDriver(scope) }
        // The next engine on this file releases the forgotten scopes if the file does not answer just now.
        try? await releaseForgotten()
    }

    @discardableResult
    func addDriver(_ scope: Scope) -> ScopeDriver {
        let driver = ScopeDriver(
            scope: scope, schemaCache: schemaCache, configuration: adapted, onConflict: onConflict
        ) { [weak self] isStopped in await self?.changed(scope, isStopped: isStopped) }
        drivers.append(driver)
        newcomers?.yield(driver)
        listening.raise()
        return driver
    }

    func removeDriver(_ scope: Scope) {
        drivers.removeAll { $0.scope == scope }
        refused.remove(scope)
        stopped.remove(scope)
        listening.raise()
    }

    /// The engine's own scopes, and those that are held.
    var followed: [Scope] { scopes + holds.keys.sorted { $0.name < $1.name } }

    /// Takes the capture triggers off, for a migration that drops a column which they name, and the indexes that the
    /// library has on the app's tables, which a program that rebuilds a table may not know how to make again. Call it
    /// inside the migration; what the migration itself writes is not captured. The next ``install()`` puts them back.
    ///
    /// Renaming a column does not need it. Sync before you do: an edit of the column that is not sealed yet cannot be
    /// told from the new one.
    ///
    /// - Throws: GRDB's `DatabaseError` where the file cannot be written.
    public static func removeCapture(_ db: Database) throws { _ = try Installation.removeCapture(db) }

    private(set) var restriction: Set<Scope>?

    /// Works on these scopes and their sub-scopes alone, although the file follows others. To be said before anything
    /// else.
    package func restrict(to scopes: [Scope]) { restriction = Set(scopes) }

    /// Pushes everything pending and pulls until every scope is up to date, whatever waits are running.
    ///
    /// All scopes are worked through, in parallel, even where one fails. Edits that the app makes meanwhile are pushed
    /// too: an app that writes more often than the server answers bounds the call by ``syncNow(within:)``.
    /// - Throws: the ``SyncError`` of the first scope that failed, or as ``install()`` does; `CancellationError` when
    ///   cancelled.
    @discardableResult
    public func syncNow() async throws -> SyncReport {
        let start = Dependencies.current.uptime
        try await install()
        var report = SyncReport()
        var errors: [Scope: SyncError] = [:]
        var due = Set(followed)
        // A verdict in one scope may let something go in another: what moved leaves its old scope then.
        for _ in 0..<Self.roundLimit where !due.isEmpty {
            await sync(due, &report, &errors)
            try Task.checkCancellation()
            let pushed = report.pushed
            due = try await unlocked(errors)
            if pushed == 0 { break }
        }
        if let error = followed.lazy.compactMap({ errors[$0] }).first { throw error }
        report.duration = .milliseconds(Dependencies.current.uptime - start)
        return report
    }

    /// How often scopes may wait for each other: a record that moved on twice before it was sent.
    private static let roundLimit = 4

    func sync(_ due: Set<Scope>, _ report: inout SyncReport, _ errors: inout [Scope: SyncError]) async {
        await withTaskGroup(of: (Scope, SyncReport.Counts, SyncError?).self) { group in
            for driver in drivers where due.contains(driver.scope) {
                group.addTask {
                    let (counts, error) = await driver.syncNow()
                    return (driver.scope, counts, error)
                }
            }
            for await (scope, counts, error) in group {
                report.scopes[scope, default: SyncReport.Counts()] += counts
                errors[scope] = error
            }
        }
    }

    /// The scopes in which something can be sent now, and nothing failed.
    private func unlocked(_ errors: [Scope: SyncError]) async throws -> Set<Scope> {
        guard followed.count > 1, let schema = await schemaCache.schema else { return [] }
        let scopes = followed.filter { errors[$0] == nil }
        do {
            return try await file.read { db in Set(try scopes.filter { try Pending.exists(db, schema, $0) }) }
        } catch let error as DatabaseError { throw Failure.database(error, scope: self.scopes[0]).error }
    }

    /// Says that there may be news, as a push notification does, a token that grants more, as after a sign-in, or a
    /// network again: every scope is pulled at once, also one that waits after a failure or was not let in. If that
    /// fails, the next wait is the longer one. What the server itself asked to wait is kept.
    public func wake() async {
        listening.raise()
        await attachmentRunner?.wake()
        for driver in drivers { await driver.wake(isNudge: true) }
        // Another engine may have taken the turn, which this one finds at its next look.
        guard lease != nil else { return }
        roundsWanted += 1
        written.raise()
    }

    /// Goes over to another configuration, also while the engine runs: an app that leaves the screen goes to
    /// ``SyncConfiguration/background``, and back when it returns (B7). ``adapt(to:)`` is the simpler way where the app
    /// has one configuration.
    ///
    /// Pages and batches keep their size as far as the new ranges let them. A wait that is longer than the new
    /// configuration allows ends sooner; one that the server asked for is kept. A scope that was at rest syncs at once.
    public func use(_ configuration: SyncConfiguration) async {
        self.configuration = configuration
        await useAdapted(syncs: true)
    }

    func useAdapted(syncs: Bool) async {
        listening.raise()
        await adaptAttachments()
        // Another call may come in between, and what it says stands.
        for driver in drivers { await driver.use(adapted, syncs: syncs) }
    }

    // MARK: Status

    /// The status as it changes, beginning with the present one. Each call starts a stream of its own, for whatever
    /// task reads it; a slow reader misses the middle, never the latest.
    public nonisolated var statusUpdates: AsyncStream<SyncStatus> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            Task {
                await self.board.add(continuation)
                await self.publishStatus()
            }
        }
    }

    /// How things stand. No request is sent, and nothing needs to be installed; where a migration has changed the
    /// schema since it was, what was written unseen is found first.
    ///
    /// - Throws: ``SyncError`` `database_failed` where the file cannot be read.
    public func status() async throws -> SyncStatus {
        let scopes = followed
        // A migration since is looked at first; where that is not possible, the file is told as it is.
        if await schemaCache.schema != nil { _ = try? await schemaCache.install() }
        let schema = await schemaCache.schema
        // A library that was here and is gone was taken out on purpose.
        let declared = schema == nil && !schemaCache.transport.isDisconnected ? schemaCache.resolved : []
        var status = try await file.asked(to: .read) { db in
            try SyncStatus(db, scopes: scopes, schema: schema, declared: declared)
        }
        status.warnings = await schemaCache.warnings
        status.receivesNudges = isListening
        let told = status.scopes.mapValues(\.lastError)
        for driver in drivers {
            let (state, remaining) = await driver.activity
            let end = wallClockMilliseconds().saturatingAdding(remaining)
            status.noteActivity(driver.scope, state, until: end, error: await driver.lastError)
        }
        if isWaiting, !schemaCache.transport.isDisconnected {
            status.noteOtherProcess(isAble: lease?.isHolderAble ?? false, told: told)
        }
        status.summarize()
        return status
    }

    private var isPublishing = false
    private var isOutdated = false

    /// Publishes the status, the progress and the lists, one reading at a time, so that an older one never comes last.
    func publishStatus() async {
        isOutdated = true
        guard !isPublishing else { return }
        isPublishing = true
        defer { isPublishing = false }
        while isOutdated {
            isOutdated = false
            // A file that cannot be read now is read again at the next change.
            if await board.isWatched, let status = try? await status() { await board.publish(status) }
            await publishProgress()
            await publishLists()
        }
    }

    // MARK: Records

    /// The edits that were refused and are kept, oldest first, each with those that wait for it.
    ///
    /// - Throws: ``SyncError`` `database_failed` where the file cannot be read.
    public func rejectedOperations() async throws -> [RejectedOperation] {
        try await file.asked(to: .read) { db in try RejectedOperation.all(db) }
    }

    /// Writes a refused edit again, as the app would: on the record as it stands now, with `changes` on top. It is sent
    /// like any other edit, and those that waited for it go with it.
    ///
    /// - Throws: ``SyncError`` `record_gone` where the record is deleted and too little is known to make it anew,
    ///   `configuration_invalid` where the table has no such column outside its key, `database_failed` where a trigger
    ///   of the app's skips the write, and as ``install()`` does; GRDB's `DatabaseError` where the app's schema refuses
    ///   it.
    public func retry(_ operation: RejectedOperation, changing changes: [String: Value] = [:]) async throws {
        try await install()
        guard let schema = await schemaCache.schema else { return }
        try await file.asked(to: .write) { db in try operation.retry(db, schema, changing: changes) }
        await publishStatus()
    }

    /// Lets go of a refused edit. One that never left this device is undone: the row becomes the server's again.
    ///
    /// Where the edit would have made a record, rows of this device's that refer to it follow the schema's own ON
    /// DELETE (deleted, or set to NULL or their default), as edits that travel; without such an action they are sent as
    /// they are, with a reference to nothing. A row of somebody else's that was made to refer to it refers again to
    /// what it refers to on the server.
    ///
    /// - Throws: ``SyncError`` as ``install()`` does, and `database_failed`; GRDB's `DatabaseError` where the app's
    ///   schema refuses what the edit's undoing writes.
    public func discard(_ operation: RejectedOperation) async throws {
        try await install()
        guard let schema = await schemaCache.schema else { return }
        try await file.asked(to: .write) { db in try operation.discard(db, schema) }
        await publishStatus()
    }

    /// Edits that met somebody else's, oldest first: what each side set, what stands, and by which rule. Those that are
    /// open wait for ``resolve(_:with:)``. The list is bounded; open ones stay.
    ///
    /// - Throws: ``SyncError`` `database_failed` where the file cannot be read.
    public func conflicts() async throws -> [Conflict] {
        try await file.asked(to: .read) { db in try LibrarySchema.isInstalled(db) ? try Conflicts.all(db) : [] }
    }

    /// Decides a conflict. What has to be written for it is a new edit, made on the record as it stands now, and
    /// travels like any other.
    ///
    /// A resolved conflict can be decided again: `.keepMine` restores what was lost, also of a record that was
    /// deleted, and `.takeTheirs` what was overwritten.
    /// - Throws: ``SyncError`` `record_gone` where the record is deleted and too little is known to make it anew,
    ///   `database_failed` where a trigger of the app's skips the write, and as ``install()`` does; GRDB's
    ///   `DatabaseError` where the app's schema refuses it.
    public func resolve(_ conflict: Conflict, with resolution: Conflict.Resolution) async throws {
        try await install()
        guard let schema = await schemaCache.schema else { return }
        try await file.asked(to: .write) { db in try conflict.resolve(with: resolution, db, schema) }
        await publishStatus()
    }

    /// Takes a resolved conflict off the list, once the user has seen it. One that is open stays.
    ///
    /// - Throws: ``SyncError`` `database_failed` where the file cannot be written.
    public func dismiss(_ conflict: Conflict) async throws {
        try await file.asked(to: .write) { db in try Conflicts.dismiss(db, conflict.id) }
    }
}
