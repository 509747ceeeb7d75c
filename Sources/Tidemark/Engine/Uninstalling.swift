import GRDB
import TidemarkWire

/// A report of what the library had in a file, and has not any more.
public struct UninstallReport: Hashable, Sendable, CustomStringConvertible {
    /// The app's tables that were synced, and stay.
    public var tables: [String]
    /// Triggers that were dropped.
    public var triggers: Int
    /// Tables of the library that were dropped, with their rows and indexes.
    public var libraryTables: Int
    /// Indexes of the library on the app's tables that were dropped.
    public var indexes: Int
    /// Rows that were deleted from the app's tables, where that was asked for.
    public var rows: Int
    /// Edits that no server will hear of. Where the rows stay, those that cannot travel are not among them.
    public var unsent: UnsentEdits

    /// Makes a value, for previews and tests.
    public init(
        tables: [String] = [], triggers: Int = 0, libraryTables: Int = 0, indexes: Int = 0, rows: Int = 0,
        unsent: UnsentEdits = UnsentEdits()
    ) {
        self.tables = tables
        self.triggers = triggers
        self.libraryTables = libraryTables
        self.indexes = indexes
        self.rows = rows
        self.unsent = unsent
    }

    /// A sentence for a log: what went, and what is lost with it.
    public var description: String {
        let gone = [
            counted(triggers, "trigger"), counted(libraryTables, "table") + " of the library",
            indexes > 0 ? counted(indexes, "index", "indexes") : nil, rows > 0 ? counted(rows, "row") : nil,
        ].compactMap(\.self)
        let lost = unsent.isEmpty ? "" : " Unsent edits: \(unsent)."
        return "Removed \(gone.joined(separator: ", ")) from \(counted(tables.count, "synced table"))." + lost
    }
}

/// The edits in a file that no server has taken: they would be lost with what the library keeps of them. The counts are
/// those of ``SyncStatus`` under the same names, except that ``rejected`` leaves out operations that this device
/// refused to send: their rows are ``unable``.
public struct UnsentEdits: Hashable, Sendable, CustomStringConvertible {
    /// Edits that are not sent yet, with nothing in their way.
    public var pending: Int
    /// Operations sealed for sending, without a verdict.
    public var sent: Int
    /// Edits that another record is in the way of.
    public var blocked: Int
    /// Operations that the server refused. Those that this device refused to send are in rows that are ``unable``.
    public var rejected: Int
    /// Open conflicts.
    public var undecided: Int
    /// Edits of scopes that are not on this device any more, and rows that came back after they were deleted elsewhere.
    public var orphaned: Int
    /// Writes that no trigger saw, found with the manifest.
    public var inferred: Int
    /// Rows that cannot travel, and so are on this device only.
    public var unable: Int
    /// Attachments whose bytes no server has acknowledged.
    public var attachments: Int

    /// Makes a value, for previews and tests.
    public init(
        pending: Int = 0, sent: Int = 0, blocked: Int = 0, rejected: Int = 0, undecided: Int = 0, orphaned: Int = 0,
        inferred: Int = 0, unable: Int = 0, attachments: Int = 0
    ) {
        self.pending = pending
        self.sent = sent
        self.blocked = blocked
        self.rejected = rejected
        self.undecided = undecided
        self.orphaned = orphaned
        self.inferred = inferred
        self.unable = unable
        self.attachments = attachments
    }

    /// Whether there are none.
    public var isEmpty: Bool { counts.allSatisfy { $0.number == 0 } }

    private var counts: [(number: Int, word: String)] {
        [
            (pending, "pending"), (sent, "sent without a verdict"), (blocked, "blocked"), (rejected, "rejected"),
            (undecided, "undecided"), (orphaned, "orphaned"), (inferred, "inferred"),
            (unable, "in rows that cannot travel"), (attachments, "attachments to upload"),
        ]
    }

    /// The numbers in words, such as "3 pending, 1 rejected".
    public var description: String {
        let parts = counts.filter { $0.number > 0 }.map { "\($0.number) \($0.word)" }
        return parts.isEmpty ? "none" : parts.joined(separator: ", ")
    }
}

extension UnsentEdits {
    /// Reads the counts from the file.
    init(_ db: Database) throws {
        self.init()
        guard try LibrarySchema.isInstalled(db) else { return }
        let status = try SyncStatus(db, scopes: ScopeRecord.all(db))
        (pending, sent, blocked) = (status.pending, status.sent, status.blocked)
        rejected = try status.rejected - Outbox.countUnsendable(db)
        (undecided, orphaned, inferred) = (status.undecided, status.orphaned, status.inferred)
        unable = status.rows.unable
        attachments = try Blob.unsent(db)
    }

    /// - Throws: `unsent_edits` where there are any.
    func refuse() throws {
        guard !isEmpty else { return }
        throw SyncError(
            .unsentEdits, "The file has edits that no server has taken: \(self).",
            hint: "Sync until nothing waits, decide about what was refused, or say that they may be discarded.")
    }
}

/// Takes the library out of a file, within the caller's transaction.
struct Uninstalling {
    let db: Database
    let discardsUnsent: Bool
    let deletesRows: Bool

    func run() throws -> UninstallReport {
        switch try LibrarySchema.standing(db) {
        case .absent: return UninstallReport()
        case .empty:
            let capture = try LibrarySchema.dropCapture(db)
            return UninstallReport(
                triggers: capture.triggers, libraryTables: try LibrarySchema.dropTables(db), indexes: capture.indexes)
        // An older version's file has other tables; a newer one's is refused.
        case .whole: try LibrarySchema.install(db)
        }
        var unsent = try UnsentEdits(db)
        // Rows that stay are not lost, whether they can travel or not.
        if !deletesRows { unsent.unable = 0 }
        if !discardsUnsent { try unsent.refuse() }
        let tables = try TableRules.all(db).keys.sorted().filter { try FileTable.exists($0, db) }
        var removed = UninstallReport(tables: tables, unsent: unsent)
        // Without triggers nothing that follows is captured.
        (removed.triggers, removed.indexes) = try LibrarySchema.dropCapture(db)
        if deletesRows {
            for table in tables {
                removed.rows += try Query.count(db, "SELECT count(*) FROM main.\(quoted(table))")
            }
            // A trigger of the app's may have filled a table that was empty already.
            for _ in 0..<2 { try empty(tables) }
        }
        removed.libraryTables = try LibrarySchema.dropTables(db)
        return removed
    }

    /// Deletes all rows. Children that RESTRICT keeps their parents go before those, wherever they stand in the list.
    private func empty(_ tables: [String]) throws {
        var left = tables
        while !left.isEmpty {
            var refusal: DatabaseError?
            let kept = try left.filter { table in
                do {
                    try db.execute(sql: "DELETE FROM main.\(quoted(table))")
                    return false
                } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
                    refusal = error
                    return true
                }
            }
            if let refusal, kept.count == left.count { throw refusal }
            left = kept
        }
    }
}
