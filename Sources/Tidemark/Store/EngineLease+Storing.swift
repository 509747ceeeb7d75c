import Foundation
import GRDB
import TidemarkCore

extension EngineLease {
    /// The machine behind a look, and what it wants to have written.
    typealias Look = (lease: EngineLease, entry: Entry?)

    private static let key = "lease"

    /// Reads which engine syncs the file. An entry that another version wrote in a form of its own counts as none.
    static func read(_ db: Database) throws -> Entry? {
        try Meta.get(db, key).flatMap { text in entry(text) }
    }

    private static func entry(_ text: String) -> Entry? {
        try? JSONDecoder().decode(Entry.self, from: Data(text.utf8))
    }

    /// Looks at the file, and writes nothing: most looks find that nothing has to be written.
    func looking(_ db: Database, _ environment: any Environment, now: Instant) throws -> Look {
        let text = try Meta.get(db, Self.key)
        // While no other engine asks for the lease, each look finds the same text.
        if let text, text == idleText { return (self, nil) }
        var lease = self
        let entry = text.flatMap { Self.entry($0) }
        let isGone = entry.map { $0.holder != name && !environment.mayBeThere($0.holder, isFirst: isNew) } ?? true
        let next = lease.look(at: entry, isGone: isGone, now: now)
        lease.idleText = next == nil && entry?.holder == name ? text : nil
        return (lease, next)
    }

    /// Looks at the file, and writes what follows from it, in the caller's transaction.
    func handle(_ db: Database, _ environment: any Environment, now: Instant) throws -> EngineLease {
        let (lease, entry) = try looking(db, environment, now: now)
        guard let entry else { return lease }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try Meta.set(db, Self.key, String(decoding: try encoder.encode(entry), as: UTF8.self))
        return lease
    }

    /// The next engine need not ask.
    func release(_ db: Database) throws {
        guard try Self.read(db)?.holder == name else { return }
        try Meta.remove(db, Self.key)
    }
}
