import GRDB
import TidemarkWire

/// The bytes that rows of one scope name, and how far they are on their way. There is a row of it for as long as rows
/// name them (``BlobChanges``).
struct Blob: Hashable, Sendable {
    /// The transfer that is due.
    enum Task: Int64, Hashable, Sendable {
        case upload = 1
        case download = 2
    }

    /// Why bytes are fetched.
    enum Wanted: Int64, Hashable, Sendable {
        case not = 0
        /// Their column is declared so.
        case automatically = 1
        /// The app asked for them.
        case asked = 2
    }

    var id: Int64 = 0
    var reference: BlobReference
    var scope: Scope
    var offers = false
    var isStored = false
    /// When the upload began after which the server had them; `nil` where they came from there.
    var storedAt: Int64?
    var wanted = Wanted.not
    var isPinned = false
    var priority: Int64 = 0
    var nextAttempt: Int64?
    var attempts: Int64 = 0
    var isAwaited = false
    var isMoving = false
    var moved: Int64 = 0
    var isFailed = false
    var reason: String?
    /// Whether the bytes were on this device when this was read; where it is written, that is looked up.
    private(set) var isHere = false

    init(reference: BlobReference, scope: Scope) { (self.reference, self.scope) = (reference, scope) }

    /// The transfer that is due, given whether the bytes are on this device; `nil` for none.
    func task(isHere: Bool) -> Task? {
        guard !isFailed else { return nil }
        if isHere { return offers && !isStored ? .upload : nil }
        return wanted != .not || isPinned ? .download : nil
    }

    /// Whether that is to be done, and was not tried since it is.
    func isFresh(_ task: Task) -> Bool { self.task(isHere: isHere) == task && attempts == 0 && nextAttempt == nil }

    /// Nothing stands in the way of the next attempt any more.
    mutating func clear() { (nextAttempt, attempts, isAwaited, isFailed, reason) = (nil, 0, false, false, nil) }

    // MARK: In the file

    private static let columns = """
        id, reference, scope, offers, stored, wanted, pinned, priority, next_attempt, attempts, awaited, moving, \
        moved, failed, reason, here, stored_at
        """

    private init?(_ row: Query) {
        guard let reference = BlobReference(row.text(1)), let scope = Scope(row.text(2)) else { return nil }
        self.init(reference: reference, scope: scope)
        id = row.integer(0)
        (offers, isStored) = (row.integer(3) != 0, row.integer(4) != 0)
        wanted = Wanted(rawValue: row.integer(5)) ?? .not
        (isPinned, priority) = (row.integer(6) != 0, row.integer(7))
        (nextAttempt, attempts) = (row.optionalInteger(8), row.integer(9))
        (isAwaited, isMoving, moved) = (row.integer(10) != 0, row.integer(11) != 0, row.integer(12))
        (isFailed, reason) = (row.integer(13) != 0, row.optionalText(14))
        isHere = row.integer(15) != 0
        storedAt = row.optionalInteger(16)
    }

    static func read(_ db: Database, _ reference: BlobReference, _ scope: Scope) throws -> Blob? {
        try Query(db, "SELECT \(columns) FROM tidemark_blob WHERE reference = ?1 AND scope = ?2")
            .first(db, [.text(reference.description), .text(scope.name)]) { Blob($0) } ?? nil
    }

    /// The same bytes in each scope whose rows name them.
    static func all(_ db: Database, _ reference: BlobReference) throws -> [Blob] {
        try Query(db, "SELECT \(columns) FROM tidemark_blob WHERE reference = ?1 ORDER BY scope")
            .rows(db, [.text(reference.description)]) { Blob($0) }.compactMap { $0 }
    }

    /// Writes it, with what is to be done by now.
    ///
    /// - Parameter now: in milliseconds since 1970.
    func save(_ db: Database, now: Int64) throws {
        let isHere = try BlobFiles.isHere(db, reference)
        try Query(
            db,
            """
            INSERT INTO tidemark_blob(reference, scope, size, offers, stored, wanted, pinned, priority, task,
              next_attempt, attempts, awaited, moving, moved, failed, reason, here, stored_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
            ON CONFLICT(reference, scope) DO UPDATE SET offers = ?4, stored = ?5, wanted = ?6, pinned = ?7,
              priority = ?8, task = ?9, next_attempt = ?10, attempts = ?11, awaited = ?12, moving = ?13, moved = ?14,
              failed = ?15, reason = ?16, here = ?17, stored_at = ?18
            """
        ).execute([
            .text(reference.description), .text(scope.name), .integer(reference.size), .flag(offers), .flag(isStored),
            .integer(wanted.rawValue), .flag(isPinned), .integer(priority), .optional(task(isHere: isHere)?.rawValue),
            .optional(nextAttempt), .integer(attempts), .flag(isAwaited), .flag(isMoving), .integer(moved),
            .flag(isFailed), .optional(reason), .flag(isHere), .optional(storedAt),
        ])
        try BlobFiles.refresh(db, reference, now: now)
    }

    /// No row names it any more.
    static func remove(_ db: Database, _ reference: BlobReference, _ scope: Scope) throws {
        try Query(db, "DELETE FROM tidemark_blob WHERE reference = ?1 AND scope = ?2")
            .execute([.text(reference.description), .text(scope.name)])
    }

    /// Changes the bytes' row in each scope that names them.
    ///
    /// - Returns: whether there is one.
    @discardableResult
    static func change(
        _ db: Database, _ reference: BlobReference, now: Int64, _ change: (inout Blob) -> Void
    ) throws -> Bool {
        let blobs = try all(db, reference)
        for var blob in blobs {
            change(&blob)
            try blob.save(db, now: now)
        }
        return !blobs.isEmpty
    }

    // MARK: The queue

    /// Whether anything can be done at a time, in milliseconds since 1970.
    ///
    /// - Parameter longest: no wait is longer: one that ends later was begun before the clock was set back.
    static func isAnyDue(_ db: Database, at now: Int64, longest: Int64) throws -> Bool {
        try Query(
            db,
            """
            SELECT EXISTS (SELECT 1 FROM tidemark_blob
                WHERE task IS NOT NULL AND next_attempt IS NULL AND moving = 0)
              OR EXISTS (SELECT 1 FROM tidemark_blob WHERE next_attempt <= ?1)
              OR EXISTS (SELECT 1 FROM tidemark_blob WHERE next_attempt > ?2)
              OR EXISTS (SELECT 1 FROM tidemark_blob WHERE moving = 1)
            """
        ).first(db, [.integer(now), .integer(now.saturatingAdding(longest))]) { $0.integer(0) != 0 } ?? false
    }

    /// The files that can travel now, the most urgent first. A file that travels already, for another scope, is not
    /// among them.
    ///
    /// - Parameter onlyAsked: whether downloads wait that the app has not asked for.
    static func ready(_ db: Database, _ task: Task, limit: Int, onlyAsked: Bool = false) throws -> [Blob] {
        let asked = onlyAsked ? " AND wanted = \(Wanted.asked.rawValue)" : ""
        return try Query(
            db,
            """
            SELECT \(columns) FROM tidemark_blob
            WHERE task = ?1 AND next_attempt IS NULL AND moving = 0\(asked)
              AND NOT EXISTS (SELECT 1 FROM tidemark_blob AS other
                WHERE other.reference = tidemark_blob.reference AND other.moving = 1)
            ORDER BY priority DESC, id LIMIT ?2
            """
        ).rows(db, [.integer(task.rawValue), .integer(Int64(limit))]) { Blob($0) }.compactMap { $0 }
    }

    /// Marks it as under way.
    func begin(_ db: Database) throws {
        try Query(db, "UPDATE tidemark_blob SET moving = 1 WHERE id = ?1").execute([.integer(id)])
    }

    static func noteMoved(_ db: Database, _ id: Int64, _ moved: Int64) throws {
        try Query(db, "UPDATE tidemark_blob SET moved = ?2 WHERE id = ?1 AND moving = 1")
            .execute([.integer(id), .integer(moved)])
    }

    /// Lets those be tried whose wait is over.
    ///
    /// - Parameter longest: as ``isAnyDue(_:at:longest:)`` has it.
    static func release(_ db: Database, upTo now: Int64, longest: Int64) throws {
        try Query(db, "UPDATE tidemark_blob SET next_attempt = NULL WHERE next_attempt <= ?1 OR next_attempt > ?2")
            .execute([.integer(now), .integer(now.saturatingAdding(longest))])
    }

    /// Lets all be tried at once, but for those that no device has uploaded yet.
    static func releaseAll(_ db: Database) throws {
        try Query(db, "UPDATE tidemark_blob SET next_attempt = NULL WHERE next_attempt IS NOT NULL AND awaited = 0")
            .execute()
    }

    /// When the next wait is over, in milliseconds since 1970.
    static func nextAttempt(_ db: Database) throws -> Int64? {
        try Query(db, "SELECT min(next_attempt) FROM tidemark_blob WHERE next_attempt IS NOT NULL")
            .first(db) { $0.optionalInteger(0) } ?? nil
    }

    /// Puts back what was under way when a process ended.
    static func recover(_ db: Database) throws {
        try Query(db, "UPDATE tidemark_blob SET moving = 0 WHERE moving = 1").execute()
    }

    /// How many attachments wait for their upload to be acknowledged; one that rows of two scopes name counts twice.
    static func unsent(_ db: Database) throws -> Int {
        try Query(db, "SELECT count(*) FROM tidemark_blob WHERE offers = 1 AND stored = 0")
            .first(db) { Int($0.integer(0)) } ?? 0
    }

    // MARK: Scopes

    /// How urgently bytes are uploaded again that the server may have lost: behind all that is new, and behind what the
    /// app fetches at `AttachmentPriority.low`.
    private static let doubted: Int64 = -2

    /// So long the server has bytes for certain that no record names, in milliseconds: it keeps them for seven days,
    /// and clocks may differ by the rest.
    static let certain: Int64 = 3 * 24 * 60 * 60 * 1000

    /// Whether they are offered again since the server may have lost them.
    var isDoubted: Bool { priority == Self.doubted }

    /// The server has them, as a transfer found.
    ///
    /// - Parameters:
    ///   - time: when an upload began, in milliseconds since 1970. Long before now it says nothing any more: the server
    ///     is asked again. `nil` for a download, which keeps nothing there.
    ///   - now: likewise.
    mutating func noteStored(at time: Int64?, now: Int64) {
        clear()
        let isCertain = time.map { 0...Self.certain ~= now.saturatingSubtracting($0) } ?? true
        (isStored, storedAt, moved) = (isCertain || !offers, time, reference.size)
        priority = isStored ? 0 : Self.doubted
    }

    /// The server may have lost what it had: bytes that are here are offered to it again.
    static func doubt(_ db: Database, _ scope: Scope, now: Int64) throws {
        try doubt(db, where: "scope = ?1", [.text(scope.parent.name)])
        try BlobFiles.refresh(db, offeredIn: scope.parent, now: now)
    }

    static func doubt(_ db: Database, where condition: String, _ arguments: [Cell]) throws {
        try Query(
            db,
            """
            UPDATE tidemark_blob SET stored = 0, offers = here, next_attempt = NULL, attempts = 0, awaited = 0,
              failed = 0, reason = NULL, priority = CASE WHEN here = 1 THEN \(doubted) ELSE priority END,
              task = CASE WHEN here = 1 THEN \(Task.upload.rawValue)
                WHEN wanted <> \(Wanted.not.rawValue) OR pinned = 1 THEN \(Task.download.rawValue) END
            WHERE stored = 1 AND \(condition)
            """
        ).execute(arguments)
    }

    // MARK: Told to the app

    /// Returns how the bytes stand in the first scope that names them, in the words of the app's own view of them.
    static func state(
        _ db: Database, of reference: BlobReference
    ) throws -> (state: String, bytes: Int64, reason: String?)? {
        try Query(
            db, "SELECT state, bytes, reason FROM tidemark_attachment WHERE reference = ?1 ORDER BY scope LIMIT 1"
        ).first(db, [.text(reference.description)]) { ($0.text(0), $0.integer(1), $0.optionalText(2)) }
    }

    /// Counts what waits to travel: uploads, downloads, the bytes of both that are not across yet, and files that no
    /// device has uploaded yet.
    static func waiting(_ db: Database) throws -> (uploads: Int64, downloads: Int64, bytesLeft: Int64, awaited: Int64) {
        try Query(
            db,
            """
            SELECT count(*) FILTER (WHERE task = 1), count(*) FILTER (WHERE task = 2 AND NOT awaited),
              sum(size - moved) FILTER (WHERE NOT awaited), count(*) FILTER (WHERE awaited)
            FROM tidemark_blob WHERE task IS NOT NULL
            """
        ).first(db) { ($0.integer(0), $0.integer(1), $0.integer(2), $0.integer(3)) } ?? (0, 0, 0, 0)
    }

    /// Counts the files of which nothing is tried any more.
    static func countFailed(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM tidemark_blob WHERE failed = 1")
    }
}

extension Cell {
    static func flag(_ value: Bool) -> Cell { .integer(value ? 1 : 0) }
}
