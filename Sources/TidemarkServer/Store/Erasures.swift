public import Foundation
import TidemarkWire

/// Counts what an erasure would remove from a scope. It is used on one thread, as ``ScopeReader`` is.
public protocol ErasureReader {
    /// Counts the things that are kept in the scope under a principal's name, or, with `nil`, all that an erasure of
    /// the scope removes.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func countKept(by principal: String?) throws -> Erasure
}

/// Erases a scope, or the things that are kept in it under a principal's name, in steps. It is used on one thread, as
/// ``ScopeWriter`` is.
public protocol ErasureWriter: ErasureReader {
    /// Marks the scope as erased since a moment: it has no entities, digests, openings and sizes any more, and its head
    /// is one more, so that whoever watches it looks. Does nothing where it is marked.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func markErased(at moment: Int64) throws

    /// Removes some of what ``ErasureReader/countKept(by:)`` counts, at most `limit` of it and, of the scope's rows,
    /// few large ones at once; nothing only where nothing is left. Answers what went.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func erase(of principal: String?, limit: Int) throws -> Erasure
}

/// The things that an erasure has removed from a store, or would.
public struct Erasure: Hashable, Sendable {
    /// Changes in the log: records, what has replaced them, deletions and events.
    public var changes = 0
    /// Devices that are known.
    public var devices = 0
    /// Lanes: how far the edits of a device have come.
    public var lanes = 0
    /// Answers that are kept for devices and for callers with an `Idempotency-Key`.
    public var verdicts = 0
    /// Ids that were assigned to what devices had named themselves.
    public var assignedIDs = 0
    /// Notes on how much somebody has added or deleted lately.
    public var tallies = 0
    /// Refused edits on the operator's list.
    public var rejections = 0
    /// Blobs; of a principal none, since nothing says who sent them.
    public var blobs = 0
    /// Uploads that are not finished.
    public var parts = 0
    /// Scopes in which there was something.
    public var scopes = 0
    /// When the scope was erased, for the first time; `nil`: it is not.
    public var erasedAt: Date?

    /// Nothing.
    public init() {}

    /// Whether there is nothing.
    public var isEmpty: Bool {
        [changes, devices, lanes, verdicts, assignedIDs, tallies, rejections, blobs, parts].allSatisfy { $0 == 0 }
    }

    /// How many things of the log that are; blobs and uploads are not among them.
    package var count: Int { changes + devices + lanes + verdicts + assignedIDs + tallies + rejections }

    mutating func add(_ other: Erasure) {
        changes += other.changes
        devices += other.devices
        lanes += other.lanes
        verdicts += other.verdicts
        assignedIDs += other.assignedIDs
        tallies += other.tallies
        rejections += other.rejections
        blobs += other.blobs
        parts += other.parts
    }
}

extension Erasure: CustomStringConvertible {
    /// A sentence for a log: `Erasure of 3 changes, 1 device in 2 scopes.`
    public var description: String {
        let counts: [(Int, String)] = [
            (changes, "change"), (devices, "device"), (lanes, "lane"), (verdicts, "verdict"),
            (assignedIDs, "assigned id"), (rejections, "rejection"), (blobs, "blob"), (parts, "unfinished upload"),
        ]
        let tallied = tallies > 0 ? [counted(tallies, "tally", "tallies")] : []
        let found = counts.filter { $0.0 > 0 }.map { counted($0.0, $0.1) } + tallied
        return "Erasure of \(found.isEmpty ? "nothing" : found.joined(separator: ", ")) in \(counted(scopes, "scope"))."
    }
}
