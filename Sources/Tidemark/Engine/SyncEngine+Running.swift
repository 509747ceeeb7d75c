import GRDB
import TidemarkCore
import TidemarkWire

extension SyncEngine {
    /// Syncs until the task is cancelled: at once, whenever something is written, and at every tick. Failures wait and
    /// are tried again by themselves; watch ``statusUpdates`` for those that need the app.
    ///
    /// Of several engines that run on one file, as those of an app and its extension do, one syncs, and the others wait
    /// (``SyncStatus/Activity/waitingForOtherProcess``): they take over when it stops, is killed or is suspended.
    ///
    /// - Throws: ``SyncError`` as ``install()`` does, but for `database_failed`, after which it is tried again;
    ///   `configuration_invalid` where the engine runs already. Cancelled, it returns, or throws `CancellationError`
    ///   while it waits to install.
    public func run() async throws {
        guard !isRunning else {
            throw SyncError(.configurationInvalid, "The engine runs already.", hint: "Keep one task that runs it.")
        }
        isRunning = true
        let environment = Dependencies.current
        let name = environment.engineName()
        lease = EngineLease(name: name, work: work, poll: configuration.pollInterval.milliseconds)
        defer {
            (isRunning, lease) = (false, nil)
            environment.noteEnd(of: name)
        }
        try await installPatiently()
        let written = written
        let observation = environment.watchEdits(of: file.writer) { written.raise() }
        defer { observation.cancel() }
        while !Task.isCancelled, !schemaCache.transport.isDisconnected {
            await waitForTurn()
            await drive()
        }
        await releaseLease()
    }

    /// Another process may hold the file just now; that must not end a task that runs for the app's whole life.
    private func installPatiently() async throws {
        while true {
            do { return try await install() } catch let error as SyncError where error.recovery == .wait {
                try await Dependencies.current.sleep(for: configuration.pollInterval)
            }
        }
    }

    /// Works on all scopes until the task is cancelled, the engine is disconnected, or another one has the lease.
    private func drive() async {
        let (added, newcomers) = AsyncStream.makeStream(of: ScopeDriver.self)
        self.newcomers = newcomers
        defer { self.newcomers = nil }
        for driver in drivers { newcomers.yield(driver) }
        if schemaCache.transport.isDisconnected { newcomers.finish() }
        await withDiscardingTaskGroup { group in
            group.addTask { await self.watch() }
            if let attachmentRunner { group.addTask { await attachmentRunner.drive() } }
            if let transport = schemaCache.transport.streaming {
                group.addTask { await self.listen(through: transport) }
            }
            for await driver in added { group.addTask { await driver.run() } }
            // The stream ends when the engine is disconnected or has lost the lease, too.
            group.cancelAll()
        }
    }

    /// Has the running engine look for edits now rather than at its next poll, for a caller who knows that somebody may
    /// have written to the file.
    package nonisolated func lookForEdits() { written.raise() }

    private func endDriving() { newcomers?.finish() }

    /// Lets ``run()`` return.
    func endRunning() {
        endDriving()
        written.raise()
    }

    /// Looks for edits: this connection's are announced, those of other connections and processes are polled for.
    private func watch() async {
        var last: Int64?
        while !Task.isCancelled {
            _ = await written.sleep(for: configuration.pollInterval)
            guard let schema = await schemaCache.schema else { continue }
            let scopes = followed
            noteWork()
            let (seen, mine, wanted, environment) = (last, lease, roundsWanted, Dependencies.current)
            let now = environment.uptime
            let found = try? await file.read { db -> (EngineLease.Look?, (Int64, [Scope])?) in
                let look = try mine?.looking(db, environment, now: now)
                let counter = try Marks.counter(db)
                // Most looks find no new edit.
                guard counter != seen else { return (look, nil) }
                return (look, (counter, try scopes.filter { try Pending.exists(db, schema, $0) }))
            }
            guard let (look, news) = found else { continue }
            if let look {
                await handleLook(look)
                guard lease?.isDriving ?? true else { return endDriving() }
            }
            // The drivers do the rounds. One that is busy is cut off where the turn is lost.
            if wanted > roundsDone, await !isAnyAtWork { roundsDone = wanted }
            guard let (counter, pending) = news else { continue }
            last = counter
            attachmentRunner?.signalWork()
            for driver in drivers where pending.contains(driver.scope) { await driver.wake() }
            await publishStatus()
        }
    }

    private var isAnyAtWork: Bool {
        get async {
            for driver in drivers where await driver.isAtWork { return true }
            return false
        }
    }

    // MARK: The lease

    /// The tables and scopes that this engine syncs, and what else it does. It waits only for one that does all of it:
    /// an engine with more scopes or tables takes over from it, one that pulls often from one that is out of sight, and
    /// one that can sync from one that cannot.
    var work: Set<String> {
        var work = Set(schemaCache.tableNames.map { "table \($0.lowercased())" })
        for scope in scopes where restriction?.contains(scope.parent) ?? true { work.insert("scope \(scope.name)") }
        if attachmentRunner != nil { work.insert("attachments") }
        for (part, isDone) in passingWork where isDone { work.insert(part) }
        return work
    }

    /// The part of it that comes and goes while the engine runs.
    private var passingWork: [(String, Bool)] {
        let isOften = adapted.receivesNudges || adapted.tick.milliseconds <= Self.oftenMilliseconds
        let isStopped = !drivers.isEmpty && drivers.allSatisfy { stopped.contains($0.scope) }
        return [("often", isOften), (EngineLease.able, !isStopped)]
    }

    private func noteWork() {
        for (part, isDone) in passingWork { lease?.note(part, isDone) }
        let poll = configuration.pollInterval.milliseconds
        guard lease?.poll != poll else { return }
        lease?.poll = poll
        lease?.idleText = nil
    }

    /// An engine that hears no nudges and has a longer tick is out of sight.
    private static var oftenMilliseconds: Int64 { 5 * 60_000 }

    /// A waiting engine looks at least this often, also where it would look for edits more rarely.
    private static var longestLook: Duration { .seconds(1) }

    /// Returns when it is this engine's turn, or ``run()`` is to end.
    private func waitForTurn() async {
        // An engine that gets its turn syncs all scopes anyway.
        defer { roundsDone = roundsWanted }
        guard lease?.isDriving == false else { return }
        await withDiscardingTaskGroup { group in
            var last: FileLook?
            while !Task.isCancelled, !schemaCache.transport.isDisconnected {
                // Where the file cannot be read, or somebody has taken the library out of it, each scope says so.
                guard let found = await lookAtLease(), found.lease != nil, lease?.isDriving == false else { break }
                let isNews = !isWaiting || !found.isSame(as: last)
                (isWaiting, last) = (true, found)
                if isNews { await publishStatus() }
                if roundsWanted > roundsDone, !isInRound {
                    (roundsDone, isInRound) = (roundsWanted, true)
                    group.addTask { await self.syncOnce() }
                }
                _ = await written.sleep(for: min(configuration.pollInterval, Self.longestLook))
            }
            group.cancelAll()
        }
        guard isWaiting else { return }
        isWaiting = false
        // A cancelled task reads nothing more, and the status must not go on to show a wait that has ended.
        try? await Dependencies.current.uncancelled { await self.publishStatus() }
    }

    /// The parts of the file by which a waiting engine sees whether the other one is at work.
    private struct FileLook: Sendable {
        var lease: EngineLease.Look?
        var counter: Int64 = 0
        var measures: String?
        var fillings: [SyncStatus.Bootstrap] = []

        /// Whether nothing was written, exchanged or filled between two looks.
        func isSame(as other: FileLook?) -> Bool {
            counter == other?.counter && measures == other?.measures && fillings == other?.fillings
                && lease?.lease.isHolderAble == other?.lease?.lease.isHolderAble
        }
    }

    /// Returns `nil` where the file cannot be read now.
    private func lookAtLease() async -> FileLook? {
        noteWork()
        let (mine, environment, scopes) = (lease, Dependencies.current, followed)
        let now = environment.uptime
        let found = try? await file.read { db -> FileLook in
            guard let mine, try LibrarySchema.isInstalled(db) else { return FileLook() }
            return FileLook(
                lease: try mine.looking(db, environment, now: now), counter: try Marks.counter(db),
                measures: try SyncMeasures.text(db), fillings: try ProgressMeter.fillings(db, scopes))
        }
        if let look = found?.lease { await handleLook(look) }
        return found
    }

    /// Takes in a look at the lease, and writes what follows from it.
    private func handleLook(_ look: EngineLease.Look) async {
        guard let before = lease else { return }
        guard look.entry != nil else {
            lease = look.lease
            return
        }
        let environment = Dependencies.current
        let now = environment.uptime
        let after = try? await file.write(at: .attempts) { db in try before.handle(db, environment, now: now) }
        // A file that cannot be written now is looked at again. Nothing rests on the name in it: an engine that has
        // found no other engine to wait for goes on, and its scopes say what is wrong with the file.
        guard lease != nil else { return }
        if let after { lease = after } else if look.lease.isDriving { lease = look.lease }
    }

    /// The app has called for a round in an engine that waits: its word is not passed on, but done here.
    private func syncOnce() async {
        var (report, errors) = (SyncReport(), [Scope: SyncError]())
        await sync(Set(followed), &report, &errors)
        isInRound = false
        if roundsWanted > roundsDone { written.raise() }
    }

    /// Lets another engine take over at its next look. Where the file cannot be written now, that one has to ask first.
    func releaseLease() async {
        // A write of its name that was cut off may have come to the file all the same: what stands there decides.
        guard let lease else { return }
        // No look writes the name again, and nothing is written twice.
        self.lease = nil
        let file = file
        try? await Dependencies.current.uncancelled {
            try await file.write(at: .attempts) { db in try lease.release(db) }
        }
    }
}
