import CSessions
import GRDB
import TidemarkWire

/// Records what the library's own transactions change in the synced tables.
struct ChangesetTap: Sendable {
    /// The writes in which rows of the server's come, or go.
    static let points: Set<WritePoint> = [.apply, .page, .records, .inferred, .recover, .lossProbe, .loss]

    let tables: [String]
    let handler: ChangesetHandler

    init(
        _ tables: [SyncedTable], isSupported: Bool = ScopeChangeset.isSupported, _ handler: @escaping ChangesetHandler
    ) throws {
        guard isSupported else {
            throw SyncError(
                .sessionsUnavailable, "This program's SQLite library has no session extension.",
                hint: "Link one that is compiled with SQLITE_ENABLE_SESSION and SQLITE_ENABLE_PREUPDATE_HOOK, or give "
                    + "no `onChangeset`.")
        }
        self.tables = tables.map(\.name)
        self.handler = handler
    }

    /// Older versions of the extension fail on the first change of a table that has generated columns.
    ///
    /// - Throws: ``SyncError`` `table_unsupported`.
    func check(_ db: Database) throws {
        for table in tables where try Self.hasGeneratedColumn(db, table) && !Self.recordsGeneratedColumns {
            throw SyncError(
                .tableUnsupported, "The generated columns of '\(table)' fit into no changeset.",
                hint: "Give no `onChangeset`, or link a newer SQLite library.")
        }
    }

    private static func hasGeneratedColumn(_ db: Database, _ table: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden IN (2, 3)")
            .first(db, [.text(table)]) { _ in true } ?? false
    }

    private static let recordsGeneratedColumns: Bool = {
        let made = try? DatabaseQueue().writeWithoutTransaction { db in
            try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, n AS (id))")
            return try Self.patchset(db, ["t"], of: { try $0.execute(sql: "INSERT INTO t (id) VALUES (1)") }).patchset
        }
        return made?.isEmpty == false
    }()

    /// Reports the changes that a failed body has committed before it failed, too.
    func recording<Result>(
        _ db: Database, _ scope: Scope, _ body: (Database) throws -> Result
    ) throws -> Result {
        let (result, patchset) = try Self.patchset(db, tables, of: { db in Swift.Result { try body(db) } })
        if !patchset.isEmpty { handler(ScopeChangeset(scope: scope, patchset: patchset)) }
        return try result.get()
    }

    /// Returns the body's changes of the tables; empty where it changes nothing.
    private static func patchset<Result>(
        _ db: Database, _ tables: [String], of body: (Database) throws -> Result
    ) throws -> (result: Result, patchset: [UInt8]) {
        var session: UnsafeMutableRawPointer?
        try check(tidemark_session_begin(UnsafeMutableRawPointer(db.sqliteConnection), &session))
        defer { tidemark_session_end(session) }
        for table in tables { try check(tidemark_session_attach(session, table)) }
        let result = try body(db)
        var (size, bytes): (CInt, UnsafeMutableRawPointer?) = (0, nil)
        try check(tidemark_session_patchset(session, &size, &bytes))
        defer { tidemark_session_free(bytes) }
        return (result, Array(UnsafeRawBufferPointer(start: bytes, count: Int(size))))
    }

    private static func check(_ code: CInt) throws {
        guard code == 0 else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
}
