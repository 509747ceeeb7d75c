import GRDB
import TidemarkWire

/// Asks the app's handler about the conflicts of one scope that wait, each once, and carries out what it says.
actor ConflictDecider {
    private let scope: Scope
    private let file: AppFile
    private let handler: ConflictHandler?
    /// How far in the list the handler has been asked; the first time also what an earlier engine has left.
    private var askedThrough: Int64 = 0

    init(scope: Scope, file: AppFile, handler: ConflictHandler?) {
        self.scope = scope
        self.file = file
        self.handler = handler
    }

    /// Returns how many were decided.
    func decide(_ schema: SyncSchema) async throws -> Int {
        guard let handler else { return 0 }
        let (scope, asked) = (scope, askedThrough)
        var decided = 0
        for conflict in try await file.read({ try Conflicts.open($0, scope, after: asked) }) {
            askedThrough = max(askedThrough, conflict.id)
            // A handler that fails has not decided; the conflict stays in the list.
            guard let resolution = try? await handler(conflict) else { continue }
            do {
                try await file.write(at: .decide) { db in try conflict.resolve(with: resolution, db, schema) }
                decided += 1
            } catch let error as DatabaseError where error.refusesRow {
                // The app's own schema refuses what its handler wants.
            } catch let error as SyncError where [.recordGone, .writeSkipped].contains(error.code) {
                // Nor can it be done.
            } catch {
                // The decision is in no file, and the handler is asked again.
                askedThrough = min(askedThrough, conflict.id - 1)
                throw error
            }
        }
        return decided
    }
}
