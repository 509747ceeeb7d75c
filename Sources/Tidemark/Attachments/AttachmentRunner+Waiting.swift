import TidemarkWire

/// Callers that wait for transfers, and the answers that they get.
extension AttachmentRunner {
    /// Somebody who waits for the next attempt at a file, or for the time when there is nothing to do.
    struct Waiter {
        var reference: BlobReference?
        var call: Int
        var continuation: AsyncStream<Result<Void, SyncError>>.Continuation
    }

    /// Hears of the end of the next attempt at a file; `nil`: of the time when there is nothing to do.
    private func wait(for reference: BlobReference?) -> AsyncStream<Result<Void, SyncError>> {
        let (stream, continuation) = AsyncStream.makeStream(of: Result<Void, SyncError>.self)
        calls += 1
        waiters.append(Waiter(reference: reference, call: calls, continuation: continuation))
        (pausedUntil, failures, lastError) = (nil, 0, nil)
        signalWork()
        return stream
    }

    /// Works until an attempt at a file has ended, or there is nothing to do now; or waits for the task that works
    /// already.
    func attempt(_ reference: BlobReference?) async throws {
        try schemaCache.transport.current()
        if reference == nil { try await write { db, _ in try Blob.releaseAll(db) } }
        let outcome = wait(for: reference)
        let call = calls
        if isStopped { dismiss() } else { work() }
        let result = await outcome.first { _ in true }
        waiters.removeAll { $0.call == call }
        // Others may wait for what is under way.
        if waiters.isEmpty, let worker {
            worker.cancel()
            await worker.value
        }
        guard let result else {
            if isStopped { throw ReleasableTransport.disconnected }
            throw CancellationError()
        }
        try result.get()
    }

    /// Works for those who wait, unless somebody does.
    func work() {
        guard !waiters.isEmpty, !isDriving, worker == nil else { return }
        worker = Dependencies.current.begin { await self.workUntilIdle() }
    }

    private func workUntilIdle() async {
        await drive(untilIdle: true)
        worker = nil
        // A transfer may have become due while the worker ended.
        work()
    }

    /// Lets those go who wait for transfers that will not be: the engine has signed out.
    func dismiss() {
        for waiter in waiters { waiter.continuation.finish() }
        waiters = []
    }

    func finish(_ reference: BlobReference, _ result: Result<BlobTransfer.Outcome, any Error>) {
        let told: Result<Void, SyncError>
        switch result {
        case .success(.done): told = .success(())
        case .success(.yielded): return
        case .failure(let error) where error is CancellationError: return
        case .success(.awaited): told = .failure(Self.unavailable("Nobody has uploaded it yet."))
        case .success(.failed(let failure)): told = .failure(Self.unavailable("It has failed: \(failure)."))
        case .failure(let error) where error is BlobTransfer.WrongBytes:
            told = .failure(Self.unavailable("Other bytes came than the reference says."))
        case .failure(let error): told = .failure(Failure(error, scope: anyScope).error)
        }
        // That a file is still awaited is no failure.
        if case .failure(let error) = told, (try? result.get()) != .awaited { lastError = error }
        tell(told) { $0.reference == reference }
    }

    /// Whether bytes that one scope does not have are asked for in another one next: then the waiting task hears only
    /// of that attempt.
    func isTriedElsewhere(_ blob: Blob, after result: Result<BlobTransfer.Outcome, any Error>) async -> Bool {
        guard case .success(.awaited) = result, !waiters.isEmpty, pausedUntil == nil else { return false }
        let all = try? await file.read { try Blob.all($0, blob.reference) }
        return all?.contains { $0.scope != blob.scope && $0.isFresh(.download) } ?? false
    }

    func announceIdle(upTo call: Int) {
        let error = lastError
        tell(error.map { .failure($0) } ?? .success(())) { $0.call <= call && $0.reference == nil }
        tell(.failure(error ?? Self.unavailable("It cannot be fetched now."))) { $0.call <= call }
    }

    private func tell(_ result: Result<Void, SyncError>, _ isMeant: (Waiter) -> Bool) {
        for waiter in waiters where isMeant(waiter) {
            waiter.continuation.yield(result)
            waiter.continuation.finish()
        }
        waiters.removeAll(where: isMeant)
    }

    func publish() async {
        guard await board.isWatched, let progress = try? await file.read({ try AttachmentProgress($0) }) else { return }
        await board.publish(progress)
    }

    static func unavailable(_ detail: String) -> SyncError {
        SyncError(.attachmentUnavailable, detail, hint: "Look at its state; what can be tried again is by itself.")
    }
}
