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

/// The edits in a file that no server has taken: they would be lost with what the library keeps of them.
public struct UnsentEdits: Hashable, Sendable, CustomStringConvertible {
    /// Edits that wait to be sent, or for the server's verdict, and those that wait for another record.
    public var waiting: Int
    /// Edits that the server refused, and conflicts that nobody has decided.
    public var undecided: Int
    /// Edits of scopes that are not on this device any more.
    public var orphaned: Int
    /// Writes that no trigger saw and that wait to be compared with the server, or for a confirmation. Rows that were
    /// there before the first sync count as `waiting`, where their table has one scope.
    public var unseen: Int
    /// Rows that cannot travel, and so are on this device only.
    public var unable: Int
    /// Attachments whose bytes no server has acknowledged.
    public var attachments: Int

    /// Makes a value, for previews and tests.
    public init(
        waiting: Int = 0, undecided: Int = 0, orphaned: Int = 0, unseen: Int = 0, unable: Int = 0, attachments: Int = 0
    ) {
        self.attachments = attachments
        self.waiting = waiting
        self.undecided = undecided
        self.orphaned = orphaned
        self.unseen = unseen
        self.unable = unable
    }

    /// Whether there are none.
    public var isEmpty: Bool { waiting + undecided + orphaned + unseen + unable + attachments == 0 }

    /// The numbers in words, such as "3 to send, 1 refused or undecided".
    public var description: String {
        let counts = [
            (waiting, "to send"), (undecided, "refused or undecided"), (orphaned, "orphaned"),
            (unseen, "not compared with the server yet"), (unable, "in rows that cannot travel"),
            (attachments, "attachments to upload"),
        ]
        let parts = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return parts.isEmpty ? "none" : parts.joined(separator: ", ")
    }
}

extension UnsentEdits {
    /// Reads the counts from the file.
    init(_ db: Database) throws {
        self.init()
        guard try LibrarySchema.isInstalled(db) else { return }
        let status = try SyncStatus(db, scopes: ScopeRecord.all(db))
        waiting = status.pending + status.sent + status.blocked
        undecided = try status.rejected - Outbox.countUnsendable(db) + status.undecided
        orphaned = status.orphaned
        unseen = try Inferred.count(db)
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
