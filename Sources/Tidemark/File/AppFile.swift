import GRDB
import TidemarkWire

/// The app's own database, as the engine reaches it.
struct AppFile: Sendable {
    let writer: any DatabaseWriter
    var changesets: ChangesetTap?
    /// The scope whose answers are written through it; `nil` where what is written is no answer.
    var scope: Scope?

    func of(_ scope: Scope) -> AppFile {
        var file = self
        file.scope = scope
        return file
    }

    func read<Result: Sendable>(_ body: @escaping @Sendable (Database) throws -> Result) async throws -> Result {
        try await Dependencies.current.use(writer, .read, at: nil, body)
    }

    func write<Result: Sendable>(
        at point: WritePoint, _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        try await writeWithoutTransaction(at: point) { db in try db.committed(body) }
    }

    func writeWithoutTransaction<Result: Sendable>(
        at point: WritePoint, _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        guard let changesets, let scope, ChangesetTap.points.contains(point) else {
            return try await Dependencies.current.use(writer, .write, at: point, body)
        }
        return try await Dependencies.current.use(writer, .write, at: point) { db in
            try changesets.recording(db, scope, body)
        }
    }
}
