import Foundation
import GRDB
import TidemarkCore
import TidemarkWire

/// Moves the bytes of attachments: finds out which ones rows name, and takes a bounded number of files up and down, the
/// most urgent first. It shares nothing with the drivers of scopes but the app's file, in short transactions, and the
/// transport.
actor AttachmentRunner {
    let file: AppFile
    let folder: BlobFolder
    let schemaCache: SchemaCache
    nonisolated let uses = Locked<[BlobReference: Int64]>([:])
    let board = StatusBoard<AttachmentProgress>()
    private let signal = WakeSignal()
    /// Whether each byte costs the user money, as far as the app knows.
    private var isMetered = false
    private var backoff: TidemarkCore.Backoff
    private var longestWait: Int64

    /// The transfers under way, by the ids of their rows.
    private var active: [Int64: Active] = [:]
    /// How many have ended.
    private var ended = 0
    private(set) var isDriving = false
    private(set) var isStopped = false
    private var stoppers: [CheckedContinuation<Void, Never>] = []
    /// Tasks that wait to drive until the one that drives has ended.
    private var turns: [AsyncStream<Void>.Continuation] = []
    /// Calls are numbered: one that comes while somebody finds that there is nothing to do has not been looked at.
    var calls = 0
    /// Whether the last look at the queue left files there that can travel: the next one needs no questions ahead.
    private var isMoreReady = false
    /// Attempts in a row that failed for a reason that all files have in common, and when the next is made.
    var failures = 0
    var pausedUntil: Instant?
    /// When files were last looked for that nothing names, in milliseconds since 1970.
    var tidiedAt: Int64?
    private var knowsFolder = false
    /// Whether notes were digested since files of lost scopes were last looked for. A process may have ended between.
    private var hasDigested = true
    var cached: Int64?
    var newest: BlobReference?
    var waiters: [Waiter] = []
    /// Works for those who wait, where the engine does not run.
    var worker: Task<Void, Never>?
    var lastError: SyncError?

    private struct Active {
        var blob: Blob
        let yields = Locked(false)
    }

    init(
        file: AppFile, configuration: AttachmentConfiguration, schemaCache: SchemaCache, backoff: TidemarkCore.Backoff,
        longestWait: Int64
    ) {
        (self.file, self.schemaCache) = (file, schemaCache)
        folder = BlobFolder(configuration: configuration)
        (self.backoff, self.longestWait) = (backoff, longestWait)
    }

    // MARK: Driving

    /// Something may have to be done.
    nonisolated func signalWork() { signal.raise() }

    /// There is a network again, or a new token: what waits after a failure is tried at once.
    func wake() async {
        (pausedUntil, failures) = (nil, 0)
        try? await write { db, _ in try Blob.releaseAll(db) }
        signalWork()
    }

    func adapt(isMetered: Bool, backoff: TidemarkCore.Backoff, longestWait: Int64) {
        (self.isMetered, self.backoff, self.longestWait) = (isMetered, backoff, longestWait)
        signalWork()
    }

    /// Ends what is under way, for good, and returns when nothing of it works on the file any more.
    func stop() async {
        isStopped = true
        signalWork()
        while isDriving { await withCheckedContinuation { stoppers.append($0) } }
        dismiss()
    }

    /// Works until it is cancelled, or there is nothing to do now.
    ///
    /// - Parameter untilIdle: whether it returns when nothing can be done now, or when somebody else works already.
    func drive(untilIdle: Bool = false) async {
        while !untilIdle, isDriving, !isStopped, !Task.isCancelled {
            // A stream ends the wait of a task that is cancelled.
            let (turn, continuation) = AsyncStream.makeStream(of: Void.self)
            turns.append(continuation)
            _ = await turn.first { _ in true }
        }
        if isStopped { dismiss() }
        guard !isDriving, !isStopped else { return }
        isDriving = true
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled, !isStopped {
                let known = calls
                let wait = await begin(&group)
                // A look that was cut short says nothing of what there is to do.
                guard !Task.isCancelled, !isStopped else { break }
                if let wait, active.isEmpty {
                    announceIdle(upTo: known)
                    if untilIdle, calls == known { break }
                    _ = await signal.sleep(for: .milliseconds(wait))
                } else {
                    _ = await signal.sleep(for: .milliseconds(Self.restMilliseconds))
                }
            }
            group.cancelAll()
        }
        isDriving = false
        for stopper in stoppers { stopper.resume() }
        for turn in turns { turn.finish() }
        (stoppers, turns) = ([], [])
        if isStopped { dismiss() } else { work() }
    }

    /// Without a call it is looked so often whether there is something to do, in milliseconds.
    private static let restMilliseconds: Int64 = 60_000

    /// Looks at what rows name, and begins what may be begun. Returns how long nothing more can be, in milliseconds;
    /// `nil` while something is under way.
    private func begin(_ group: inout DiscardingTaskGroup) async -> Int64? {
        let known = ended
        do {
            // Before files of lost scopes go, and in a pause, notes tell what rows name by now.
            let isKnown = isMoreReady && !hasDigested && pausedUntil == nil
            let schema = try await isKnown ? schemaCache.install() : digest()
            if !knowsFolder { try await knowFolder() }
            knowsFolder = true
            if hasDigested {
                hasDigested = false
                do { try await removeOrphans(onlyLost: true) } catch {
                    hasDigested = true
                    throw error
                }
            }
            if let rest = pausedUntil.map({ $0 - Dependencies.current.uptime }), rest > 0 {
                return active.isEmpty ? rest : nil
            }
            pausedUntil = nil
            guard let begun = try await beginMostUrgent() else { return await begin(&group) }
            for blob in begun {
                active[blob.id] = Active(blob: blob)
                group.addTask { await self.move(blob, schema) }
            }
            // Tidying may take a while: transfers that are under way go on, and no other one begins meanwhile.
            try await tidyWhenDue()
            await publish()
            // A transfer that has ended meanwhile has made room, which is to be looked at first.
            guard active.isEmpty, ended == known else { return nil }
            try await makeRoomWhenIdle()
            let next = try await file.read { try Blob.nextAttempt($0) }
            let wait = next.map { max($0.saturatingSubtracting(wallClockMilliseconds()), 1) } ?? Self.restMilliseconds
            return min(wait, Self.restMilliseconds)
        } catch {
            if !(error is CancellationError) { pause(Failure.database(error, scope: anyScope)) }
            return active.isEmpty ? max(pausedUntil.map { $0 - Dependencies.current.uptime } ?? 0, 1) : nil
        }
    }

    var anyScope: Scope { schemaCache.followed[0] }

    /// Finds out what rows name by now.
    @discardableResult
    func digest() async throws -> SyncSchema {
        let schema = try await schemaCache.install()
        while try await file.read({ try BlobChanges.areAny($0) }) {
            try await write { db, now in try BlobChanges.digest(db, schema, now: now) }
            hasDigested = true
            try Task.checkCancellation()
        }
        return schema
    }

    /// Begins the most urgent files, as far as there is room. One that is more urgent than one under way takes its
    /// place at that one's next part. `nil` where notes are to be digested first.
    private func beginMostUrgent() async throws -> [Blob]? {
        let limit = max(1, folder.configuration.parallelTransfers)
        let free = limit - active.count
        let (now, isAlone, settings) = (wallClockMilliseconds(), active.isEmpty, folder.configuration)
        let longest = max(backoff.maximumMilliseconds, Self.longestAsked)
        let asksNothing = isMoreReady
        isMoreReady = false
        if !asksNothing {
            let isDue = try await file.read { db in try Blob.isAnyDue(db, at: now, longest: longest) }
            guard isDue else { return [] }
        }
        let (uploads, asksFirst) = (
            !isMetered || settings.uploadsOnMetered, isMetered && !settings.downloadsOnMetered
        )
        // A file travels once at a time, whichever scopes name it.
        let busy = Set(active.values.map(\.blob.reference))
        let found = try await write { db, now -> (begun: [Blob], next: Blob?)? in
            // Rows may have ceased to name these, or name something more urgent.
            if asksNothing, try BlobChanges.areAny(db) { return nil }
            if isAlone { try Blob.recover(db) }
            try Blob.release(db, upTo: now, longest: longest)
            var found = uploads ? try Blob.ready(db, .upload, limit: limit) : []
            found += try Blob.ready(db, .download, limit: limit, onlyAsked: asksFirst)
            found.sort { ($1.priority, $0.id) < ($0.priority, $1.id) }
            var seen = busy
            let able = found.filter { seen.insert($0.reference).inserted }
            let begun = Array(able.prefix(max(free, 0)))
            for blob in begun { try blob.begin(db) }
            return (begun, able.dropFirst(begun.count).first)
        }
        guard let found else { return nil }
        isMoreReady = found.next != nil
        if let next = found.next, let last = active.values.min(by: { $0.blob.priority < $1.blob.priority }),
            last.blob.priority < next.priority
        {
            last.yields.withLock { $0 = true }
        }
        return found.begun
    }

    // MARK: One transfer

    /// Which file a transfer began with, and when, in milliseconds since 1970.
    private struct FileReading: Sendable {
        var stamp: FileStamp?
        var time: Int64
    }

    private func move(_ blob: Blob, _ schema: SyncSchema) async {
        var result: Result<BlobTransfer.Outcome, any Error>
        let isHere = blob.isHere
        let read = FileReading(stamp: folder.stamp(of: blob.reference), time: wallClockMilliseconds())
        do {
            // An attachment that the server does not know would be collected there: `declaration_mismatch`.
            _ = try await schemaCache.declarations(clientID: schema.clientID, scope: blob.scope)
            let transfer = BlobTransfer(
                transport: schemaCache.transport, folder: folder, reference: blob.reference, scope: blob.scope,
                clientID: schema.clientID, attempts: blob.isAwaited ? 0 : blob.attempts, isDoubted: blob.isDoubted
            ) { [weak self] in await self?.progressed(blob.id, $0) ?? false }
            result = .success(try await isHere ? transfer.upload() : transfer.download())
        } catch { result = .failure(error) }
        // Bytes that have come go to their place even where the task is cancelled just now.
        do {
            if try await noteOutcome(of: blob, isHere: isHere, read, result) { result = .success(.yielded) }
            if case .success(let outcome) = result, outcome != .yielded { failures = 0 }
        } catch {
            result = .failure(error)
            if !(error is CancellationError) { pause(Failure.database(error, scope: blob.scope)) }
        }
        let isTried = await isTriedElsewhere(blob, after: result)
        active[blob.id] = nil
        ended += 1
        if !isTried { finish(blob.reference, result) }
        signalWork()
    }

    private func progressed(_ id: Int64, _ moved: Int64) async -> Bool {
        guard let transfer = active[id] else { return false }
        if transfer.yields.withLock({ $0 }) || Task.isCancelled { return false }
        guard moved != transfer.blob.moved else { return true }
        active[id]?.blob.moved = moved
        failures = 0
        // The file may be busy; the next part tells it, too.
        try? await write { db, _ in try Blob.noteMoved(db, id, moved) }
        await publish()
        return true
    }

    /// Notes what came of a transfer. Returns whether the app has put another file there meanwhile, which is uploaded
    /// in its place.
    ///
    /// - Parameter read: the file that was read.
    private func noteOutcome(
        of blob: Blob, isHere: Bool, _ read: FileReading, _ result: Result<BlobTransfer.Outcome, any Error>
    ) async throws -> Bool {
        var isNew = false
        if case .success(.done) = result { isNew = !isHere }
        let (folder, delay, isPlaced) = (folder, delay(after: result, blob), isNew)
        let hasMoved = (active[blob.id]?.blob.moved ?? 0) > blob.moved
        if case .failure(let error) = result { noteFailure(error, blob) }
        let hasOther = try await write { db, now in
            let next = now.saturatingAdding(delay)
            if isPlaced {
                try folder.place(folder.partial(of: blob.reference), as: blob.reference)
                try BlobFiles.add(db, blob.reference, now: now)
            }
            // Rows may have ceased to name it.
            guard var after = try Blob.read(db, blob.reference, blob.scope) else { return false }
            after.isMoving = false
            var isReplaced = false
            switch result {
            case .success(.done):
                after.noteStored(at: isHere ? read.time : nil, now: now)
                if after.wanted == .asked { after.wanted = .not }
            case .success(.yielded): break
            case .success(.awaited):
                after.isAwaited = true
                (after.attempts, after.nextAttempt) = (after.attempts + 1, next)
            case .success(.failed(let failure)):
                let isLost = failure == .fileMissing || failure == .fileDamaged
                isReplaced = isLost && folder.contains(blob.reference) && folder.stamp(of: blob.reference) != read.stamp
                if isReplaced { break }
                if failure == .fileDamaged { try folder.remove(blob.reference) }
                if isLost { try BlobFiles.remove(db, blob.reference, now: now) }
                (after.isFailed, after.reason) = (true, failure.rawValue)
            case .failure(let error):
                if !(error is CancellationError) { after.fail(error, hasMoved: hasMoved, next: next) }
            }
            try after.save(db, now: now)
            return isReplaced
        }
        if isNew { try folder.fsyncName(of: blob.reference) }
        if case .success(.done) = result { try await makeRoom(for: isNew ? blob.reference : nil) }
        return hasOther
    }

    /// The wait before a file's next attempt, in milliseconds.
    private func delay(after result: Result<BlobTransfer.Outcome, any Error>, _ blob: Blob) -> Int64 {
        var (kind, asked, longest) = (FailureClass.transient, Int64(0), longestWait)
        switch result {
        case .success: longest = .max
        case .failure(let error):
            let failure = Failure(error, scope: blob.scope)
            (kind, asked) = (failure.kind, Self.asked(by: failure))
            if kind.isRefusal { longest = .max }
        }
        let attempts = Int(clamping: min(blob.attempts + 1, 64))
        let wait = backoff.delay(
            failures: attempts, class: kind, jitter: Dependencies.current.random(), longest: longest)
        return max(wait, asked)
    }

    /// Takes in a failure. One that no file has for itself makes all wait.
    private func noteFailure(_ error: any Error, _ blob: Blob) {
        guard !(error is CancellationError), !(error is BlobTransfer.WrongBytes) else { return }
        let failure = Failure(error, scope: blob.scope)
        switch failure.kind {
        case .transient, .unauthenticated: pause(failure)
        case .server, .forbidden, .needsApp, .halted, .resolve, .bootstrap: break
        }
    }

    private func pause(_ failure: Failure) {
        failures = min(failures + 1, 64)
        lastError = failure.error
        let wait = backoff.delay(
            failures: failures, class: failure.kind, jitter: Dependencies.current.random(), longest: longestWait)
        pausedUntil = Dependencies.current.uptime + max(wait, Self.asked(by: failure))
    }

    /// No server keeps files waiting for longer, as it does not keep records.
    private static let longestAsked = SyncMachine.Settings().longestAskedMilliseconds

    /// The wait that the server asked for, in milliseconds.
    private static func asked(by failure: Failure) -> Int64 { min(failure.wait ?? 0, longestAsked) }

    // MARK: The file

    /// A short transaction; no bytes of attachments move meanwhile.
    func write<Result: Sendable>(_ body: @escaping @Sendable (Database, Int64) throws -> Result) async throws -> Result
    {
        let now = wallClockMilliseconds()
        return try await file.write(at: .attempts) { db in try body(db, now) }
    }
}

extension Blob {
    /// So often wrong bytes come before they are not asked for any more.
    private static let wrongLimit: Int64 = 3

    /// An attempt has failed that is not the file's last, unless wrong bytes came too often.
    ///
    /// - Parameter hasMoved: whether bytes got across.
    fileprivate mutating func fail(_ error: any Error, hasMoved: Bool, next: Int64) {
        let isWrong = error is BlobTransfer.WrongBytes
        // Somebody has uploaded them: the attempts that found nothing say nothing of this network.
        if isAwaited, isWrong || hasMoved { (isAwaited, attempts) = (false, 0) }
        // A network that lets some parts through gets larger ones again, one step at a time: whole parts would be lost
        // where all began anew.
        attempts = hasMoved && !isWrong ? max(attempts - 1, 0) : attempts + 1
        nextAttempt = next
        if isWrong {
            (moved, reason, isFailed) = (0, AttachmentFailure.wrongBytes.rawValue, attempts >= Self.wrongLimit)
        } else {
            reason = Failure(error, scope: scope).reason
        }
    }
}

extension Failure {
    /// The name by which the app hears of it.
    fileprivate var reason: String { problem?.code.rawValue ?? error.code.rawValue }
}
