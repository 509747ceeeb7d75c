import Foundation
import GRDB

extension SyncMeasures {
    private static let key = "measures"

    /// The sums that the file keeps. What an other version wrote in a form of its own counts as nothing.
    static func read(_ db: Database) throws -> SyncMeasures {
        guard try LibrarySchema.isInstalled(db), let text = try Meta.get(db, key) else { return SyncMeasures() }
        return (try? JSONDecoder().decode(SyncMeasures.self, from: Data(text.utf8))) ?? SyncMeasures()
    }

    /// Adds these numbers to the file's, in the caller's transaction.
    func store(_ db: Database, now: Int64) throws {
        guard self != SyncMeasures() else { return }
        var sum = try Self.read(db)
        sum += self
        sum.since = sum.since ?? Date(milliseconds: now)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try Meta.set(db, Self.key, String(decoding: try encoder.encode(sum), as: UTF8.self))
    }
}
