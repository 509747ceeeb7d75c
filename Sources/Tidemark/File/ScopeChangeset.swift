import CSessions
public import GRDB
public import TidemarkWire

/// The changes of the synced tables by one answer of the server, in the form of SQLite's own session extension: for
/// other databases of the same schema, such as a read-only copy for a widget, or a file of another process.
///
/// ```swift
/// let sync = try SyncEngine(
///     for: database, tables: tables, scopes: ["workspace:123"], transport: transport,
///     onChangeset: { changeset in
///         do { try copy.write { db in try changeset.apply(to: db) } } catch { copyIsStale(error) }
///     })
/// ```
///
/// Edits that the app makes here are in no changeset: they are the app's own to write elsewhere, too.
public struct ScopeChangeset: Hashable, Sendable {
    /// Whose page or answer it was.
    public let scope: Scope
    /// A patchset: of each row that changed its key, and the columns that did. Any program with the extension reads it
    /// (`sqlite3changeset_apply`).
    public let patchset: [UInt8]

    /// Makes a changeset of bytes that were kept.
    public init(scope: Scope, patchset: [UInt8]) {
        self.scope = scope
        self.patchset = patchset
    }

    /// Whether the SQLite library of this program has the session extension. Apple's has not.
    public static var isSupported: Bool { tidemark_sessions_exist() != 0 }

    /// Makes the same changes in another database, inside its transaction. A row that is there already is replaced,
    /// and one that is not there is passed over, so that a changeset may come twice; so is a table that is not there,
    /// or has another key. Open that database with `foreignKeysEnabled = false`: answers bring children before their
    /// parents.
    ///
    /// - Throws: `DatabaseError` where a constraint is broken: nothing is changed then.
    public func apply(to db: Database) throws {
        let code = patchset.withUnsafeBytes { bytes in
            tidemark_patchset_apply(
                UnsafeMutableRawPointer(db.sqliteConnection), CInt(bytes.count), bytes.baseAddress)
        }
        guard code == 0 else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
}

/// Hears of what each answer has changed. Runs on the database's writer, right after the commit, in the order of the
/// commits: it must not use that database itself, and holds up all writing while it runs. A process that ends between
/// commit and call leaves one out; then copy the file.
public typealias ChangesetHandler = @Sendable (ScopeChangeset) -> Void
