import CConnectionSwitch
import GRDB
import GRDBSQLite

/// A switch turns one of SQLite's features off for a connection, and on again. After each turn SQLite compiles all
/// statements of the connection anew, the app's own too, and GRDB's authorizer remembers all tables that they write, so
/// that a switch must not turn for each of many rows.
enum ConnectionSwitch {
    case triggers
    /// Whether foreign keys are enforced, and their actions run. `PRAGMA foreign_keys` does nothing inside a
    /// transaction; this switch turns there too.
    case foreignKeys

    /// Runs with the switch off, where it is not off already.
    func off<Result>(_ db: Database, _ body: () throws -> Result) throws -> Result {
        let wasOn = try set(db, to: 0)
        let result = Swift.Result { try body() }
        if wasOn { _ = try set(db, to: 1) }
        return try result.get()
    }

    /// Runs, and turns the switch on again if the body has turned it off: once for all rows that need it off, and not
    /// at all where there is none.
    func restoring<Result>(_ db: Database, _ body: () throws -> Result) throws -> Result {
        let wasOn = try isOn(db)
        let result = Swift.Result { try body() }
        if wasOn { _ = try set(db, to: 1) }
        return try result.get()
    }

    /// Turns the switch off, within ``restoring(_:_:)``.
    func turnOff(_ db: Database) throws { _ = try set(db, to: 0) }

    func isOn(_ db: Database) throws -> Bool { try set(db, to: -1) }

    /// Returns whether it was on.
    ///
    /// - Parameter state: 1 is on, 0 off, and -1 leaves the switch as it is.
    private func set(_ db: Database, to state: CInt) throws -> Bool {
        var was: CInt = 0
        let code = tidemark_switch(UnsafeMutableRawPointer(db.sqliteConnection), option, state, &was)
        guard code == 0 else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
        return was != 0
    }

    private var option: tidemark_option {
        switch self {
        case .triggers: TIDEMARK_TRIGGERS
        case .foreignKeys: TIDEMARK_FOREIGN_KEYS
        }
    }
}
