import TidemarkServer
import TidemarkWire

/// Writes to tables that are sent together, without an answer to each. Where one of them is refused all are undone, and
/// the same is done again one after the other: only so each can be refused for itself.
struct TableWrites {
    /// The writes in their order; an insert or an update fails where it reaches no row.
    var requests: [Request] = []
    /// The schema of the log.
    var home = ""
}

extension PostgresScopeWriter {
    func together<Result>(_ records: [(entity: String, id: RecordID)], _ body: () throws -> Result) throws -> Result {
        guard records.count > 1 else { return try body() }
        try expect(records)
        defer { forgetExpected() }
        guard records.contains(where: { tables[$0.entity] != nil }) else { return try body() }
        return try written(body) ?? body()
    }

    private func written<Result>(_ body: () throws -> Result) throws -> Result? {
        let (memory, kept, laneRows) = (memory, kept, laneRows)
        writesTogether = true
        var isDone = false
        defer {
            writesTogether = false
            if !isDone {
                (self.memory, self.kept, self.laneRows) = (memory, kept, laneRows)
                lastNewest = nil
            }
        }
        let result = try session.together {
            let result = try body()
            try sendTogether()
            return result
        }
        isDone = result != nil
        return result
    }

    /// Entities whose newest rows are read ahead in one push: each may take a portion of memory until the push ends.
    private static let entityLimit = 4

    /// Reads the newest rows of records in one go, as far as they are not large, of the entities with most of them.
    private func expect(_ records: [(entity: String, id: RecordID)]) throws {
        let groups = Dictionary(grouping: records, by: { EntityKey($0.entity) }).values
        for ids in groups.sorted(by: { $0.count > $1.count }).prefix(Self.entityLimit) {
            guard let entity = ids.first?.entity else { continue }
            try expectSmall(entity, Array(Set(ids.map { Array($0.id.text.utf8) })))
        }
    }

    /// Sends the writes that were kept back. A table's own statements run with the path that its triggers expect, and
    /// constraints are checked with each of them.
    private func sendTogether() throws {
        let writes = memory.tableWrites
        memory.tableWrites = TableWrites()
        guard !writes.requests.isEmpty else { return }
        try session.tell(Self.pathOut)
        try session.tell(Self.checkNow)
        for request in writes.requests { try session.writeShaped(request) }
        try session.tell(Self.pathBack(to: writes.home))
    }
}
