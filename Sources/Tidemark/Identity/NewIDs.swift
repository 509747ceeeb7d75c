public import Foundation
import TidemarkCore

extension UUID {
    /// A new UUID of version 7 (RFC 9562): the key to give to new records, made on this device, once and for all.
    ///
    /// It begins with the time, so new rows go to the end of the table and of its indexes: inserts touch few pages of
    /// the file, and a first fill in key order is several times as fast as with random UUIDs. Within a process each is
    /// above the last, even when the clock is set back.
    ///
    /// GRDB stores it as 16 bytes; with `.lowercaseString` as the type's encoding strategy, or as
    /// `UUID.v7().uuidString.lowercased()`, it is a text key, longer but readable. Keep to one of them in a table, and
    /// to one case.
    public static func v7() -> UUID {
        Dependencies.current.nextUUID().withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}

/// Ids for new records of an entity that the operator declared with `ids: server`. The server's answer puts the
/// record's own id in their place, in its row and wherever this device refers to it.
///
/// They are random, never counted: a device that was restored from a backup must not use one twice.
public enum TemporaryID {
    /// For a text key: `local-` and 32 random digits.
    public static func text() -> String {
        let dependencies = Dependencies.current
        return TemporaryShape.text(random: (dependencies.random(), dependencies.random()))
    }

    /// For an integer key: a random negative number of 62 bits.
    public static func integer() -> Int64 { TemporaryShape.integer(random: Dependencies.current.random()) }
}
