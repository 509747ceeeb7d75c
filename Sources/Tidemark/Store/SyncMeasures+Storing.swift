import Foundation
import GRDB
import TidemarkCore
import TidemarkWire

extension SyncMeasures {
    private static let key = "measures"

    /// The sums that the file keeps. What another version wrote in a form of its own counts as nothing.
    static func read(_ db: Database) throws -> SyncMeasures {
        guard try LibrarySchema.isInstalled(db), let text = try Meta.get(db, key) else { return SyncMeasures() }
        let kept = try? JSONDecoder().decode(SyncMeasures.self, from: Data(text.utf8))
        return kept.flatMap { $0.isPlausible ? $0 : nil } ?? SyncMeasures()
    }

    /// The sums as they stand in the file: others behind each exchange, whichever process made it.
    static func text(_ db: Database) throws -> String? { try Meta.get(db, key) }

    /// Adds these numbers to the file's, in the caller's transaction.
    func store(_ db: Database, now: Int64) throws {
        guard self != SyncMeasures() else { return }
        var sum = try Self.read(db)
        sum += try named(db, as: sum)
        sum.since = sum.since ?? Date(milliseconds: now)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try Meta.set(db, Self.key, String(decoding: try encoder.encode(sum), as: UTF8.self))
    }

    /// The same by the names of this file's tables: how many names there are is not for a server to say. What is of no
    /// table here goes under the empty name.
    private func named(_ db: Database, as sum: SyncMeasures) throws -> SyncMeasures {
        let new = entities.filter { sum.entities[$0.key] == nil }
        guard !new.isEmpty else { return self }
        var measures = self
        for (name, traffic) in new {
            measures.entities[name] = nil
            let table = try TableRules.spelling(db, of: name) ?? ""
            measures.add([table: traffic])
        }
        return measures
    }

    /// Whether the numbers can be added up; others are no sums of this library's.
    private var isPlausible: Bool {
        let traffic = entities.values.flatMap { [$0.sent, $0.bytesSent, $0.received, $0.bytesReceived] }
        let counts = [requests, bytesSent, bytesReceived, received, applied, firstData.scopes] + failures.values
        let times = [firstData.total.milliseconds, firstData.longest.milliseconds]
        return (traffic + counts).allSatisfy { (0...1 << 60).contains($0) }
            && times.allSatisfy { (0...1 << 60).contains($0) }
    }
}
