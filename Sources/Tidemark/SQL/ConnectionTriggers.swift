import CTriggerSwitch
import GRDB

/// The connection's own switch for all triggers.
enum ConnectionTriggers {
    /// Runs with the connection's triggers off, where they are not off already.
    static func off<Result>(_ db: Database, _ body: () throws -> Result) throws -> Result {
        let wereOn = try set(db, to: 0)
        let result = Swift.Result { try body() }
        if wereOn { _ = try set(db, to: 1) }
        return try result.get()
    }

    /// Returns whether they were on.
    private static func set(_ db: Database, to state: CInt) throws -> Bool {
        var was: CInt = 0
        let code = tidemark_set_triggers(UnsafeMutableRawPointer(db.sqliteConnection), state, &was)
        guard code == 0 else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
        return was != 0
    }
}
