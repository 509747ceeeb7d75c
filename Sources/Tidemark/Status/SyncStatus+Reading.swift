import Foundation
package import GRDB
import TidemarkCore
package import TidemarkWire

extension SyncStatus {
    /// Reads the status from the file, but for the activities, which are the drivers' to tell.
    package init(_ db: Database, scopes: [Scope]) throws { try self.init(db, scopes: scopes, schema: nil) }

    /// - Parameters:
    ///   - schema: the tables as they were read last, which saves reading them once more.
    ///   - declared: the tables that the first sync will capture, where none has been yet.
    init(
        _ db: Database, scopes: [Scope], schema: SyncSchema?,
        declared: [(name: String, rule: SyncedTable.ScopeRule)] = []
    ) throws {
        guard try LibrarySchema.isInstalled(db) else {
            for scope in scopes { self.scopes[scope] = ScopeStatus() }
            try countUncaptured(db, declared)
            return
        }
        let marks = try Pending.marks(db)
        pending = try marks.count + Inferred.countSeeds(db) + QuarantinedRow.departures(db)
        unfollowed = try Pending.unfollowed(db, followed: scopes)
        oldestEdit = [marks.since, try Outbox.oldestOpen(db)].compactMap { $0 }.min().map(Date.init(milliseconds:))
        sent = try Outbox.countOpen(db)
        rejected = try Outbox.countRejected(db)
        blocked = try BlockedEdits.count(db)
        undecided = try Conflicts.countOpen(db)
        quarantined = try QuarantinedRow.count(db)
        orphaned = try OrphanedEdits.count(db)
        inferred = try Inferred.countAllButSeeds(db)
        let version = try SyncSchema.version(db)
        try countRows(db, schema.flatMap { $0.schemaVersion == version ? $0 : nil })
        for scope in scopes {
            let record = try ScopeRecord.read(db, scope)
            var status = ScopeStatus()
            status.complete = record.complete
            status.head = record.head
            status.accessLost = try ScopeRecord.lostAt(db, scope).map(Date.init(milliseconds:))
            status.lastSync = record.lastSync.map(Date.init(milliseconds:))
            status.lastError = try Deferral.read(db, scope)?.error(in: scope)
            let attempts = try Attempts.read(db, scope)
            (status.failures, status.nextAttempt) = (attempts.failures, attempts.next.map(Date.init(milliseconds:)))
            status.bootstrap = try record.bootstrap.map { try SyncStatus.Bootstrap($0, db) }
            let remedy = try RemedyMachine.read(db, scope)
            status.remedy = SyncStatus.Remedy(remedy, now: wallClockMilliseconds())
            if let error = remedy.stopError(scope) { (status.lastError, status.activity) = (error, .stopped(error)) }
            self.scopes[scope] = status
        }
    }

    /// Tables that only another engine on this file names are counted too: their rows are in the file.
    private mutating func countRows(_ db: Database, _ schema: SyncSchema?) throws {
        for (name, rule) in try TableRules.all(db).sorted(by: { $0.key < $1.key }) {
            let known = schema?[name]
            // A table of the schema is known to be an ordinary one.
            guard try known == nil ? FileTable.exists(name, db) : FileTable.isListed(name, db) else {
                missingTables.append(name)
                continue
            }
            guard try ShadowTable.exists(db, of: name),
                let shape = try known ?? TableSchema.supported(db, table: name, rule: rule)
            else { continue }
            let counting = RowCounting(db: db, shape: shape)
            tables[name] = try counting.rows()
            pending -= try counting.markedSeeds()
        }
    }

    /// Before the first install every row with a key is outgoing. The tables are scanned.
    private mutating func countUncaptured(
        _ db: Database, _ declared: [(name: String, rule: SyncedTable.ScopeRule)]
    ) throws {
        for table in declared {
            guard let name = try FileTable.named(table.name, db).first(where: { !$0.isTemporary })?.name,
                let shape = try TableSchema.supported(db, table: name, rule: table.rule)
            else { continue }
            let isNamed = shape.isNamedSQL("t")
            tables[name] = try Query(db, "SELECT count(*), count(*) FILTER (WHERE \(isNamed)) FROM \(shape.sql) AS t")
                .first(db) { Rows(outgoing: Int($0.integer(1)), unable: Int($0.integer(0) - $0.integer(1))) }
        }
    }

    /// Notes what a scope's driver does.
    ///
    /// - Parameter end: when a wait ends, in milliseconds since 1970.
    mutating func noteActivity(_ scope: Scope, _ state: SyncMachine.State, until end: Int64, error: SyncError?) {
        if let error { scopes[scope]?.lastError = error }
        let stop = scopes[scope]?.stopActivity
        scopes[scope]?.activity =
            switch state {
            // The server was not asked yet since the app began, so the operator's stop in the file still holds.
            case .idle: stop ?? .idle
            case .exchanging, .applying, .bootstrapping, .filling: .syncing
            case .waiting: .waiting(until: Date(milliseconds: end))
            case .stopped: error.map(Activity.stopped) ?? .idle
            }
    }

    /// Another process syncs the file: what this engine would rest or wait for is not its own to do.
    ///
    /// - Parameters:
    ///   - isAble: whether that one has not stopped, so that a stop of this one's says nothing of the file.
    ///   - told: the errors that stand in the file.
    mutating func noteOtherProcess(isAble: Bool, told: [Scope: SyncError?]) {
        for (scope, status) in scopes {
            switch status.activity {
            case .idle, .waiting: break
            case .stopped where isAble && status.stopActivity == nil: break
            case .syncing, .waitingForOtherProcess, .stopped: continue
            }
            scopes[scope]?.activity = .waitingForOtherProcess
            // An error that this engine met before it waited says nothing of the other one.
            scopes[scope]?.lastError = told[scope] ?? nil
        }
    }

    /// Sums up the scopes: an activity that needs the app comes first, then work, then waits.
    mutating func summarize() {
        let ordered = scopes.sorted { $0.key < $1.key }.map(\.value)
        lastError = ordered.compactMap(\.lastError).first
        lastSync = ordered.allSatisfy { $0.lastSync != nil } ? ordered.compactMap(\.lastSync).min() : nil
        let activities = ordered.map(\.activity)
        activity = activities.max { $0.urgency < $1.urgency } ?? .idle
    }
}

extension SyncStatus.ScopeStatus {
    /// The activity of a scope that the operator has stopped, as the file says it.
    fileprivate var stopActivity: SyncStatus.Activity? {
        if case .stopped? = remedy, case .stopped = activity { activity } else { nil }
    }
}

extension SyncStatus.Remedy {
    /// `nil` where nothing goes on.
    ///
    /// - Parameter now: in milliseconds since 1970.
    fileprivate init?(_ machine: RemedyMachine, now: Int64) {
        switch machine.state {
        case .slowed(let interval, _, let until):
            guard machine.interval(now: now) > 0 else { return nil }
            self = .slowedDown(interval: .milliseconds(interval), until: Date(milliseconds: until))
        case .refillDue, .refilling: self = .refilling
        case .verifyDue: self = .verifying
        case .stopped(let message): self = .stopped(message: message)
        case .none: return nil
        }
    }
}

extension SyncStatus.Bootstrap {
    /// Reads a filling as the file keeps it.
    init(_ filling: Bootstrap, _ db: Database) throws {
        self.init(
            rows: Int(clamping: filling.rows),
            // An earlier build kept whatever number it was told.
            total: filling.total.map { Int(clamping: min($0, SnapshotAnswer.mostRecords)) },
            entity: filling.entity ?? filling.swapped.last)
    }
}

extension SyncStatus.Activity {
    fileprivate var urgency: Int {
        switch self {
        case .stopped: 4
        case .syncing: 3
        case .waiting: 2
        case .waitingForOtherProcess: 1
        case .idle: 0
        }
    }
}
