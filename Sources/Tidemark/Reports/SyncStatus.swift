public import Foundation
public import TidemarkWire

/// The state of syncing, for a screen.
///
/// ``pending``, ``sent``, ``blocked``, ``rejected``, ``undecided``, ``orphaned`` and ``inferred`` count edits, each of
/// which is one of these; a record that was edited again after it was sent, refused or blocked counts once for each of
/// its edits. ``unfollowed`` is a part of ``pending``. ``tables`` counts rows: it answers the other question, how much
/// of what is on screen the server has. The words are those of the glossary, under "Counts".
public struct SyncStatus: Hashable, Sendable {
    /// The engine's present activity.
    public enum Activity: Hashable, Sendable {
        /// At rest.
        case idle
        /// Talking to the server.
        case syncing
        /// Offline or asked to wait; the next attempt comes then.
        case waiting(until: Date)
        /// Another process syncs the file, with what is written here; this one takes over when that one ends.
        case waitingForOtherProcess
        /// The app must act.
        case stopped(SyncError)
    }

    /// The filling of a scope from a snapshot: at first, and after the server could not go on from the checkpoint.
    public struct Bootstrap: Hashable, Sendable {
        /// Rows that have come so far.
        public var rows: Int
        /// How many rows there are, where the server has said so; what is written meanwhile comes on top.
        public var total: Int?
        /// The table whose rows come now, as far as it is known.
        public var entity: String?

        /// Makes a value, for previews and tests.
        public init(rows: Int, total: Int? = nil, entity: String? = nil) {
            self.rows = rows
            self.total = total
            self.entity = entity
        }
    }

    /// What the operator has asked of this device in a scope, as long as it goes on.
    public enum Remedy: Hashable, Sendable {
        /// It asks and sends at most once in an interval, until then.
        case slowedDown(interval: Duration, until: Date)
        /// The scope is filled anew; edits are kept.
        case refilling
        /// The tables are compared with the server's records.
        case verifying
        /// It syncs no more, for what the operator says. Edits are kept.
        case stopped(message: String)
    }

    /// How one scope stands.
    public struct ScopeStatus: Hashable, Sendable {
        /// The engine's present activity in the scope.
        public var activity: Activity
        /// The last version at which the rows here were whole.
        public var complete: Version?
        /// The server's last version, as last heard.
        public var head: Version?
        /// When the server took the access away; `nil` while it is granted, and where it never was.
        public var accessLost: Date?
        /// When the scope was last in sync.
        public var lastSync: Date?
        /// The last failure, until the next success.
        public var lastError: SyncError?
        /// Exchanges that have failed in a row. Kept in the file, like the next attempt.
        public var failures: Int
        /// When the next attempt is made, where the last has failed.
        public var nextAttempt: Date?
        /// How far the scope is on its way to being filled, at first or anew; `nil` where it is not.
        public var bootstrap: Bootstrap?
        /// What the operator has asked of this device here; `nil` where nothing goes on.
        public var remedy: Remedy?
        /// Versions not yet here: the checkpoint's lag.
        public var lag: Version? { head.map { $0 - (complete ?? 0) } }

        /// The time since the scope was last in sync: the checkpoint's age; `nil` where it never was.
        public func age(at date: Date = Date()) -> Duration? {
            lastSync.map { .milliseconds(date.milliseconds) - .milliseconds($0.milliseconds) }
        }

        /// Makes a status, for previews and tests; without arguments, that of a scope which never synced.
        public init(
            activity: Activity = .idle, complete: Version? = nil, head: Version? = nil, accessLost: Date? = nil,
            lastSync: Date? = nil, lastError: SyncError? = nil, failures: Int = 0, nextAttempt: Date? = nil,
            bootstrap: Bootstrap? = nil, remedy: Remedy? = nil
        ) {
            self.activity = activity
            self.complete = complete
            self.head = head
            self.accessLost = accessLost
            self.lastSync = lastSync
            self.lastError = lastError
            self.failures = failures
            self.nextAttempt = nextAttempt
            self.bootstrap = bootstrap
            self.remedy = remedy
        }
    }

    /// The busiest of all scopes' activities, or the one that needs the app.
    public var activity: Activity = .idle
    /// Edits that are not sent yet, with nothing in their way: one for each edited record, for each row of a first
    /// capture that was not sent yet, and for each delete that ends a move to another scope.
    public var pending = 0
    /// The part of ``pending`` in scopes that this engine does not follow: an engine that follows them sends it.
    public var unfollowed = 0
    /// When the oldest edit that is ``pending`` or ``sent`` was made; of rows of a first capture, when they were
    /// captured. Rows of a first capture that wait to be compared with the server's one by one, and deletes that end a
    /// move to another scope, have no such time while they are pending, and so do not count here.
    public var oldestEdit: Date?
    /// Operations sealed for sending, without a verdict.
    public var sent = 0
    /// Records whose edit is not sent since another record is in its way. It goes by itself behind a record that goes
    /// first, or that gets its id from the server; where the insert of a record that it refers to was refused, it goes
    /// once that is decided. The latter are the dependants of ``SyncEngine/rejectedOperations()``.
    public var blocked = 0
    /// Operations that the server refused, and that are kept until the app decides; see
    /// ``SyncEngine/rejectedOperations()``. Those that this device refused to send are among them.
    public var rejected = 0
    /// Open conflicts; see ``SyncEngine/conflicts()``. Their operations are not in ``rejected``.
    public var undecided = 0
    /// Edits of scopes that this device has no more, and rows that came back after they were deleted elsewhere; see
    /// ``SyncEngine/orphanedEdits()``.
    public var orphaned = 0
    /// Writes that no trigger saw, found with the manifest: not compared with the server yet, or too many to be sent
    /// without a word (``SyncEngine/inferredEdits()``).
    public var inferred = 0
    /// Quarantined rows: this device's schema does not take them as things stand, or another scope's row has
    /// their place. They are the server's rows; only one that was never sent is not.
    public var quarantined = 0
    /// Where the rows of each synced table stand: every row is confirmed, outgoing, stalled or unable to travel. Before
    /// the first sync, which captures them, every row with a key is outgoing.
    public var tables: [String: Rows] = [:]
    /// The same of all tables together.
    public var rows: Rows { tables.values.reduce(into: Rows()) { $0 += $1 } }
    /// Whether a stream of nudges is open, by which the engine hears at once of what changes elsewhere; else it asks at
    /// every tick.
    public var receivesNudges = false
    /// Synced tables that are in the file no more.
    public var missingTables: [String] = []
    /// When all scopes were last in sync.
    public var lastSync: Date?
    /// The last failure, until the next success.
    public var lastError: SyncError?
    /// Each scope.
    public var scopes: [Scope: ScopeStatus] = [:]
    /// Warnings about what the schema hides from capture, or does while changes are applied; for developers.
    public var warnings: [String] = []

    /// Makes a status, for previews and tests; set the properties that it is to show. Without any it is that of an
    /// engine at rest, with nothing to send.
    public init(activity: Activity = .idle, scopes: [Scope: ScopeStatus] = [:], tables: [String: Rows] = [:]) {
        self.activity = activity
        self.scopes = scopes
        self.tables = tables
    }

    /// Whether nothing waits, neither for the server nor for anybody's word: every row of every table is confirmed, and
    /// nothing is refused, orphaned or kept outside its table. Says nothing of what the server has and this device
    /// has not heard of.
    public var isConfirmed: Bool {
        pending + sent + blocked + rejected + undecided + orphaned + inferred + quarantined == 0
            && tables.values.allSatisfy(\.isConfirmed)
    }
}

extension SyncStatus: CustomStringConvertible {
    /// A sentence or two for a log or a screen, without row data: the engine's activity, and what waits.
    public var description: String {
        let counts = [
            (pending, "pending"), (sent, "sent without a verdict"), (blocked, "blocked"), (rejected, "rejected"),
            (undecided, "undecided"), (orphaned, "orphaned"), (inferred, "inferred"), (quarantined, "quarantined"),
        ]
        let waits = counts.filter { $0.0 > 0 }.map { "\($0) \($1)" }
        guard waits.isEmpty else { return "\(activity): \(waits.joined(separator: ", "))." }
        return "\(activity); " + (isConfirmed ? "nothing waits." : "some rows are not confirmed yet.")
    }
}

extension SyncStatus.Activity: CustomStringConvertible {
    /// The beginning of a sentence: `Waiting until 2026-11-28T14:00:00Z`.
    public var description: String {
        switch self {
        case .idle: "At rest"
        case .syncing: "Syncing"
        case .waiting(let date): "Waiting until \(date.formatted(.iso8601))"
        case .waitingForOtherProcess: "Synced by another process"
        case .stopped(let error): "Stopped by \(error.code)"
        }
    }
}

extension SyncStatus.Bootstrap: CustomStringConvertible {
    /// A sentence for a log or a screen: `Received 30 of 100 rows, now those of note.`
    public var description: String {
        let received = total.map { "\(rows) of \(counted($0, "row"))" } ?? counted(rows, "row")
        return "Received \(received)" + (entity.map { ", now those of \($0.printable)" } ?? "") + "."
    }
}

extension SyncStatus.Remedy: CustomStringConvertible {
    /// A sentence for a log or a screen: `Stopped by the operator: Please update the app.`
    public var description: String {
        switch self {
        case .slowedDown(let interval, let date):
            "Slowed down to one exchange in \(counted(interval.wholeSeconds, "second")), until "
                + "\(date.formatted(.iso8601))."
        case .refilling: "Being filled anew for the operator."
        case .verifying: "Being compared with the server's records for the operator."
        case .stopped(let message): "Stopped by the operator: \(message.printable)"
        }
    }
}

extension SyncStatus.ScopeStatus: CustomStringConvertible {
    /// A sentence for a log or a screen: the activity, how far the rows here are, and what stands in the way.
    public var description: String {
        let isFilling = bootstrap != nil
        let place =
            complete.map { isFilling ? "being filled anew" : "whole at version \($0)" }
            ?? (isFilling ? "being filled" : "not filled yet")
        let parts = [
            place,
            lag.flatMap { $0 > 0 ? "\($0) behind the server" : nil },
            lastSync.map { "last in sync \($0.formatted(.iso8601))" },
            accessLost.map { "without access since \($0.formatted(.iso8601))" },
            lastError.map { "failed with \($0.code)" + (failures > 1 ? " \(failures) times in a row" : "") },
            remedy == nil ? nil : "under an order of the server's operator",
        ]
        return "\(activity): \(parts.compactMap(\.self).joined(separator: ", "))."
    }
}
