import GRDB
import TidemarkWire

/// Rows that the app's schema refuses, and that find their places later.
extension Applier {
    func quarantine(
        _ table: ApplyTable, _ id: RecordID, _ cells: [Cell], version: Version?, _ error: DatabaseError
    ) throws {
        table.mayContend = true
        outcome.quarantined += 1
        try QuarantinedRow.put(
            db, table.shape, record: id.text, scope: scope.name, version: version, cells: cells, reason: error.refusal,
            contends: error.dependsOnOthers)
    }

    func resolveUniqueValues() throws {
        for table in tables.values { _ = try resolveUniqueValues(in: table) }
    }

    private func resolveUniqueValues(in table: ApplyTable) throws -> Int {
        guard try table.mayContend || !QuarantinedRow.isEmpty(db, table.shape.name) else { return 0 }
        try beforeWritingRows()
        let placed = try UniqueResolver(db: db, table: table.records).resolve()
        outcome.quarantined = max(0, outcome.quarantined - placed)
        return placed
    }
}

// MARK: - A first filling

/// A snapshot brings one table after the other, by name, and the app's triggers may refuse rows whose parents are still
/// to come. Such rows are quarantined without a try, until the last page.
extension Applier {
    func isQuarantining(_ table: ApplyTable) -> Bool { isFilling && table.isRefusing }

    func quarantineUntilFilled(_ table: ApplyTable, _ id: RecordID, _ cells: [Cell], version: Version?) throws {
        table.mayContend = true
        outcome.quarantined += 1
        try QuarantinedRow.put(
            db, table.shape, record: id.text, scope: scope.name, version: version, cells: cells,
            reason: "Waiting for rows of other tables.", contends: true)
    }

    /// Finds places for the rows of one page: of tables that it has brought, where they are not quarantined unseen.
    func resolvePage() throws {
        for table in tables.values where table.mayContend && !isQuarantining(table) {
            _ = try resolveUniqueValues(in: table)
        }
    }

    /// How often all tables are gone through: rows that even then wait for each other are looked at with the next page.
    private static let passes = 16

    /// Finds places for all rows, table by table in the order in which they were made: parents mostly come before their
    /// children.
    func resolveFilling() throws {
        let order = try Query(db, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
            .rows(db) { $0.text(0) }
        let places = Dictionary(zip(order, order.indices)) { first, _ in first }
        let sorted = tables.values.sorted { places[$0.shape.name] ?? 0 < places[$1.shape.name] ?? 0 }
        for _ in 0..<Self.passes {
            guard try sorted.reduce(0, { try $0 + resolveUniqueValues(in: $1) }) > 0 else { return }
        }
    }
}
