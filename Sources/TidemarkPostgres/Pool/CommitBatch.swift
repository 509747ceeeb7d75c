import TidemarkServer

/// A write that waits. Its body may run more than once; what it answers counts after the commit.
struct CommitJob: Sendable {
    let scope: Scope
    /// Whom it is for.
    let caller: String
    /// Whether he has gone. It is the write's own, and so tells it from the others.
    let isGone: Guarded<Bool>
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

    /// The result of a transaction, kept until it is committed.
    private struct Done {
        let answers: [CommitJob.Answer]
        /// Scopes that have rows now which they had not.
        let changed: [Scope]
        /// Writes that have no part in it.
        let left: [CommitJob]
    }

    /// The time after which a transaction takes no further write: a write in it already waits for its commit.
    private static let time = Duration.milliseconds(50)

    /// Commits all of them together, or, where that fails, each by itself: so that none is refused for another's sake.
    /// Returns those that were not begun because the others have taken long.
    func commit(on line: Line) -> [CommitJob] {
        var isLocked = false
        do {
            if jobs.count > 1 {
                let isShared = Set(jobs.map(\.scope)).count > 1
                return give(try line.finish(transact(jobs, try line.session(), isBrief: isShared)))
            }
        } catch let error as StoreUnavailable {
            // The server is away, or it is unknown whether the commit was made: in no case may the jobs run again.
            for job in jobs { job.fail(error) }
            return []
        } catch {
            line.check()
            isLocked = (error as? PostgresError)?.code == .locked
        }
        commitEach(isLocked ? commitBriefly(on: line) : jobs, on: line)
        return []
    }

    /// Commits what need not wait for somebody's lock, and answers what has to, or has failed in another way.
    private func commitBriefly(on line: Line) -> [CommitJob] {
        var late: Set<Scope> = []
        return jobs.filter { job in
            guard !late.contains(job.scope) else { return true }
            do {
                give(try line.finish(transact([job], try line.session(), isBrief: true)))
                return false
            } catch let error as StoreUnavailable {
                job.fail(error)
                return false
            } catch {
                line.check()
                late.insert(job.scope)
                return true
            }
        }
    }

    private func commitEach(_ jobs: [CommitJob], on line: Line) {
        // A failure that holds up one job of a scope holds up the others too: they need not wait for it one after the
        // other.
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

    @discardableResult
    private func give(_ done: Done) -> [CommitJob] {
        for answer in done.answers { answer() }
        hints.changed(done.changed)
        return done.left
    }

    /// How long a write waits for a program's lock on a row or table of its own while other scopes wait with it.
    private static let brief = Statement("brief", "SET LOCAL lock_timeout TO '200ms'")

    private func transact(
        _ jobs: [CommitJob], _ session: Session, isBrief: Bool = false
    ) -> WriteOutcome<Done> {
        // All nodes lock scopes in the same order, so that two never wait for each other.
        let scopes = Set(jobs.map(\.scope)).sorted()
        let locks = scopes.flatMap(ScopeRow.lock)
        // A brief transaction with a single job does not wait long for its scope either.
        let first = isBrief && jobs.count == 1 ? [Request(Self.brief)] : []
        return session.write(asking: first + [AttachedTables.all] + locks) { mark, asked in
            let found = asked.dropFirst(first.count)
            let tables = try AttachedTables(found.first)
            if isBrief, first.isEmpty, !tables.isEmpty { try session.tell(Self.brief) }
            let rows = try ScopeRow.locked(scopes, found.dropFirst(), session)
            let incarnation = incarnations.id(in: mark.run)
            var writers: [Scope: PostgresScopeWriter] = [:]
            for (scope, row) in zip(scopes, rows) {
                writers[scope] = PostgresScopeWriter(
                    session, scope, row, incarnation: incarnation, tables: tables)
            }
            let end = ContinuousClock.now + Self.time
            var (answers, left): ([CommitJob.Answer], [CommitJob]) = ([], [])
            for job in jobs {
                guard answers.isEmpty || .now < end else {
                    left.append(job)
                    continue
                }
                guard let writer = writers[job.scope] else { continue }
                writer.delaysOthers = !answers.isEmpty
                answers.append(try run(job, writer, session, isAlone: jobs.count == 1))
            }
            for scope in scopes { try writers[scope]?.finish() }
            for scope in scopes { try writers[scope]?.keepRejections() }
            return Done(answers: answers, changed: scopes.filter { writers[$0]?.hasAppended == true }, left: left)
        }
    }

    /// Runs one job in a part of its own, so that its failure undoes only itself. A job that is alone takes the whole
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
