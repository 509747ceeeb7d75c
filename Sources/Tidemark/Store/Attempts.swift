import GRDB
import TidemarkWire

/// How often a scope's exchange has failed since one last went through (B10): an app that is started anew goes on where
/// it was.
struct Attempts: Hashable, Sendable {
    var failures = 0
    /// When the next one is made, in milliseconds since 1970; `nil` where none has failed.
    var next: Int64?

    static func read(_ db: Database, _ scope: Scope) throws -> Attempts {
        try Query(db, "SELECT attempts, next_attempt FROM tidemark_scope WHERE name = ?1")
            .first(db, [.text(scope.name)]) { Attempts(failures: Int($0.integer(0)), next: $0.optionalInteger(1)) }
            ?? Attempts()
    }

    func write(_ db: Database, _ scope: Scope) throws {
        try Query(db, "UPDATE tidemark_scope SET attempts = ?2, next_attempt = ?3 WHERE name = ?1")
            .execute([.text(scope.name), .integer(Int64(failures)), .optional(next)])
    }
}
