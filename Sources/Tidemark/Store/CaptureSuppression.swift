package import GRDB

/// The row that makes capture look away. It exists only inside a transaction, so no other connection ever sees it.
package enum CaptureSuppression {
    package static func raise(_ db: Database) throws {
        try Query(db, "INSERT INTO tidemark_applying(flag) VALUES (1)").execute()
    }

    package static func lower(_ db: Database) throws { try Query(db, "DELETE FROM tidemark_applying").execute() }
}
