package import GRDB
import TidemarkWire

extension SyncError {
    /// Makes an error of SQLite's code: neither the statement nor a value of it is told.
    package init(_ error: DatabaseError, scope: Scope? = nil) {
        guard !error.isInterruptionError else {
            self.init(
                .databaseInterrupted, "The app has interrupted or suspended its database.",
                hint: "It is tried again by itself, at once when the app resumes it.", scope: scope)
            return
        }
        self.init(
            .databaseFailed, "The database failed: SQLite error \(error.resultCode).",
            hint: Self.remedy(error.resultCode), scope: scope)
    }

    private static func remedy(_ code: ResultCode) -> String {
        switch code {
        case .SQLITE_FULL: "Make room on the disk; it is tried again by itself."
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            "Another program holds the file: let it finish, or end it; it is tried again by itself."
        case .SQLITE_CORRUPT, .SQLITE_NOTADB:
            "The file is damaged: put a backup in its place, or begin with an empty one."
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_CANTOPEN, .SQLITE_AUTH:
            "See that the file and its folder may be written."
        default: "Look at the app's log; it is tried again by itself."
        }
    }
}

extension AppFile {
    /// Reads or writes for a call of the app's. What the database itself refuses is a ``SyncError``; what the app's own
    /// schema refuses stays the `DatabaseError` that the app knows.
    func asked<Result: Sendable>(
        to access: FileAccess, _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        do {
            return switch access {
            case .read: try await read(body)
            case .write: try await write(at: .decide, body)
            }
        } catch let error as DatabaseError where access == .read || !error.refusesRow { throw SyncError(error) }
    }
}
