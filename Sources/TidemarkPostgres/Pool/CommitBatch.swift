import TidemarkServer

/// A write that waits. Its body may run more than once; what it answers counts after the commit.
struct CommitJob: Sendable {
    let scope: Scope
    /// Does the work; what comes back gives the answer out.
    let run: @Sendable (any ScopeWriter) throws -> Answer
    let fail: @Sendable (any Error) -> Void

    typealias Answer = @Sendable () -> Void
}

/// Writes that share a transaction.
struct CommitBatch: Sendable {
    let jobs: [CommitJob]
    let incarnations: Incarnations
    let hints: HintSender

    /// What a transaction has come to, for when it is committed.
    private struct Done {
        let answers: [CommitJob.Answer]
        /// Scopes that have rows now which they had not.
        let changed: [Scope]
    }

    /// Commits all of them together, or, where that fails, each by itself: so that none is refused for another's sake.
    func commit(on line: Line) {
        do {
            if jobs.count > 1 {
                give(try line.finish(transact(jobs, try line.session())))
                return
            }
        } catch let error as StoreUnavailable {
            // Nobody is there, or nobody knows whether it is done: in no case may it be done again.
            for job in jobs { job.fail(error) }
            return
        } catch { line.check() }
        // What holds up one job of a scope holds up the others too: they need not wait for it one after the other.
        var unavailable: [Scope: StoreUnavailable] = [:]
        for job in jobs {
            if let error = unavailable[job.scope] {
                job.fail(error)
            } else {
                unavailable[job.scope] = commit(job, on: line)
            }
        }
    }

    private func commit(_ job: CommitJob, on line: Line) -> StoreUnavailable? {
        do {
            give(try line.repeating { session in try line.finish(transact([job], session)) })
            return nil
        } catch {
            job.fail(error)
            return (error as? StoreUnavailable).map { StoreUnavailable($0.description) }
        }
    }

    private func give(_ done: Done) {
        for answer in done.answers { answer() }
        hints.changed(done.changed)
    }

    private func transact(_ jobs: [CommitJob], _ session: Session) -> WriteOutcome<Done> {
        // One order for all nodes, so that two never wait for each other.
        let scopes = Set(jobs.map(\.scope)).sorted()
        let locks = scopes.flatMap(ScopeRow.lock)
        return session.write(asking: [AttachedTables.all] + locks) { mark, answers in
            let tables = try AttachedTables(answers.first)
            let rows = try ScopeRow.locked(scopes, answers.dropFirst(), session)
            let incarnation = incarnations.id(in: mark.run)
            var writers: [Scope: PostgresScopeWriter] = [:]
            for (scope, row) in zip(scopes, rows) {
                writers[scope] = PostgresScopeWriter(
                    session, scope, row, incarnation: incarnation, tables: tables)
            }
            let answers = try jobs.compactMap { job in
                try writers[job.scope].map { try run(job, $0, session, isAlone: jobs.count == 1) }
            }
            for scope in scopes { try writers[scope]?.finish() }
            for scope in scopes { try writers[scope]?.keepRejections() }
            return Done(answers: answers, changed: scopes.filter { writers[$0]?.hasAppended == true })
        }
    }

    /// One job in a part of its own, so that its failure undoes only itself. One that is alone takes the whole
    /// transaction with it.
    private func run(
        _ job: CommitJob, _ writer: PostgresScopeWriter, _ session: Session, isAlone: Bool
    ) throws -> CommitJob.Answer {
        if isAlone { return try job.run(writer) }
        do { return try writer.attempt { try job.run(writer) } } catch {
            try session.checkUnbroken()
            if error is AlreadyStored { throw error }
            return { job.fail(error) }
        }
    }
}
