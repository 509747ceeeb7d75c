import GRDB
import TidemarkWire

/// Inserts that the server took, and whose rows are still as it took them. Such an operation is replayed after a server
/// lost history, as any finished one is, but all that it says stands in its row: the file keeps its place in the outbox
/// alone, some 30 bytes instead of 450, and makes the rest again from the row when it is needed.
///
/// An operation is filled, which puts it back into `tidemark_operation` as it was, before its row changes: when an edit
/// of the record is sealed, when another row of the server's comes, and when it is to be replayed.
struct FinishedInserts {
    let db: Database

    static let schema = """
        -- Inserts that the server took and whose rows are as it took them (FinishedInserts). packed: the record's id.
        -- operation: its id in tidemark_operation. What they have in common stands in their run; number and version
        -- there are those of an operation, less its id.
        CREATE TABLE tidemark_finished_run(
            id INTEGER PRIMARY KEY, scope TEXT NOT NULL, entity TEXT NOT NULL, lane TEXT NOT NULL,
            number INTEGER NOT NULL, version INTEGER NOT NULL, epoch TEXT, is_seed INTEGER NOT NULL,
            fields TEXT NOT NULL, started_at INTEGER NOT NULL, finished_at INTEGER NOT NULL);
        CREATE TABLE tidemark_finished(
            packed BLOB NOT NULL, run INTEGER NOT NULL, operation INTEGER NOT NULL,
            PRIMARY KEY (packed, run)) WITHOUT ROWID;

        """

    /// What the operations of one lane have in common. Within a run, numbers and versions follow the operations' ids at
    /// fixed distances, as they do where many are sealed and answered together.
    private struct Run: Hashable {
        var scope: String
        var entity: String
        var lane: String
        /// The number of an operation, less its id.
        var number: Int64
        /// The version of an operation, less its id.
        var version: Version
        var epoch: String?
        var isSeed: Bool
        /// The fields that were sealed: the columns that the table had then, and that this device may write.
        var fields: NameList
    }

    private struct Entry {
        var run: Run
        var runID: Int64
        var finishedAt: Int64
        var operation: Int64
        var record: RecordID
    }

    /// A run is used again while it is younger: it is dropped as a whole, with its newest operation.
    private static let longestRun: Int64 = 24 * 3600 * 1000
    /// Operations that are looked at in one transaction.
    private static let batch = 1000

    // MARK: Reading

    static func isAny(_ db: Database) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_finished_run LIMIT 1").first(db) { _ in true } ?? false
    }

    /// The last operation of each run of a scope (`?1`), as the outbox has it, as SQL.
    static let newest = """
        SELECT r.lane, max(f.operation), max(f.operation) + r.number, r.finished_at, 'applied'
        FROM tidemark_finished_run AS r JOIN tidemark_finished AS f ON f.run = r.id WHERE r.scope = ?1 GROUP BY r.id
        """

    private static let columns = """
        r.scope, r.entity, r.lane, r.number, r.version, r.epoch, r.is_seed, r.fields, r.id, r.finished_at,
        f.operation, f.packed
        """

    private static func entry(_ row: Query) -> Entry? {
        guard let record = ManifestKey.decode(row.blob(11)[...]) else { return nil }
        return Entry(
            run: Run(
                scope: row.text(0), entity: row.text(1), lane: row.text(2), number: row.integer(3),
                version: row.integer(4), epoch: row.optionalText(5), isSeed: row.integer(6) != 0,
                fields: NameList(row.text(7))),
            runID: row.integer(8), finishedAt: row.integer(9), operation: row.integer(10), record: record)
    }

    private func entries(of shape: TableShape, _ id: RecordID) throws -> [Entry] {
        try Query(
            db,
            """
            SELECT \(Self.columns) FROM tidemark_finished AS f JOIN tidemark_finished_run AS r ON r.id = f.run
            WHERE f.packed = ?1 AND r.entity = ?2
            """
        ).rows(db, [.blob(ManifestKey.encode(id)), .text(shape.name)], Self.entry).compactMap { $0 }
    }

    private func entries(in scope: Scope) throws -> [Entry] {
        try Query(
            db,
            """
            SELECT \(Self.columns) FROM tidemark_finished_run AS r JOIN tidemark_finished AS f ON f.run = r.id
            WHERE r.scope = ?1
            """
        ).rows(db, [.text(scope.name)], Self.entry).compactMap { $0 }
    }

    // MARK: Filling

    /// Fills a record's operations: its row is about to change.
    ///
    /// - Parameter version: of the row that comes; an operation of that very version is as the row will be, and stays.
    func fill(_ shape: TableShape, _ id: RecordID, unless version: Version? = nil) throws {
        for entry in try entries(of: shape, id) where entry.run.version + entry.operation != version {
            try fill(entry, shape)
        }
    }

    /// Fills the operations of a scope that a server does not have.
    ///
    /// - Parameter marks: how far the server still knows each lane.
    func fill(_ layout: Layout, _ scope: Scope, above marks: [String: Int64]) throws {
        let lost = try entries(in: scope).filter { $0.run.number + $0.operation > marks[$0.run.lane] ?? 0 }
        guard !lost.isEmpty else { return }
        // Tables that the app does not name any more are replayed too.
        let shapes = try TableRules.shapes(db, holding: scope, beside: layout)
        for shape in shapes {
            for entry in lost where entry.run.entity == shape.name { try fill(entry, shape) }
        }
    }

    /// Fills the operations of one table.
    func fill(_ shape: TableShape, in scope: Scope) throws {
        for entry in try entries(in: scope) where entry.run.entity == shape.name { try fill(entry, shape) }
    }

    private func fill(_ entry: Entry, _ shape: TableShape) throws {
        try Query(db, "DELETE FROM tidemark_finished WHERE packed = ?1 AND run = ?2")
            .execute([.blob(ManifestKey.encode(entry.record)), .integer(entry.runID)])
        let run = entry.run
        guard let scope = Scope(run.scope),
            let row = try RecordTable(shape).serverRow(db, entry.record, in: scope),
            let operation = Self.operation(run, shape, entry.record, row)
        else { return }
        let insert = Outbox.FinishedInsert(
            id: entry.operation, key: OperationKey(lane: run.lane, number: run.number + entry.operation),
            entity: run.entity, record: entry.record.text, members: operation.sealedMembers(),
            version: run.version + entry.operation, finishedAt: entry.finishedAt)
        try Outbox.restore(db, insert, scope)
    }

    /// The operation as it was sealed. A column that the table has no more is left out.
    private static func operation(_ run: Run, _ shape: TableShape, _ id: RecordID, _ row: [Cell]) -> Operation? {
        var operation = Operation(.upsert, entity: run.entity, id: id)
        (operation.epoch, operation.isSeed) = (run.epoch, run.isSeed)
        var fields = DataObject.Builder(capacity: 256)
        for name in run.fields.list {
            guard let index = shape.dataIndex(name) else { continue }
            guard row[index].isSendable else { return nil }
            fields.append(name: shape.data[index].wireName) { $0.cell(row[index]) }
        }
        operation.fields = fields.finish()
        return operation
    }

    // MARK: Packing

    /// Packs what was finished behind an operation, where there is enough of it, and returns how far it has looked.
    ///
    /// - Parameters:
    ///   - complete: the version at which the scope's rows are whole: the server's rows above it are not known yet.
    ///   - minimum: with fewer operations than this, nothing is done.
    func pack(
        _ layout: Layout, _ declarations: Declarations, _ scope: Scope, complete: Version, after start: Int64,
        minimum: Int
    ) throws -> Int64 {
        let candidates = try Outbox.finishedInserts(db, scope, upTo: complete, after: start, limit: Self.batch)
        guard let last = candidates.last, candidates.count >= minimum else { return start }
        var packer = Packer(db: db, scope: scope, declarations: declarations)
        var packable: [(Outbox.FinishedInsert, Run)] = []
        for candidate in candidates {
            guard let shape = layout[candidate.entity], let run = try packer.run(of: candidate, shape) else { continue }
            packable.append((candidate, run))
        }
        // A few among many take no room.
        guard packable.count >= minimum else { return last.id }
        for (candidate, run) in packable { try packer.pack(candidate, run) }
        return last.id
    }

    /// Packs operations one by one, and looks up once what they have in common.
    private struct Packer {
        let db: Database
        let scope: Scope
        let declarations: Declarations
        private var fields: [String: NameList] = [:]
        private var last: Run?
        private var runs: [Run: Int64] = [:]

        init(db: Database, scope: Scope, declarations: Declarations) {
            (self.db, self.scope, self.declarations) = (db, scope, declarations)
        }

        /// The run that says all of an operation but its row, where that is as it was sent; `nil` where none does.
        mutating func run(of candidate: Outbox.FinishedInsert, _ shape: TableShape) throws -> Run? {
            let table = RecordTable(shape)
            guard let id = RecordID(candidate.record), let key = shape.key(of: id),
                ManifestKey.decode(ManifestKey.encode(id)[...]) == id, try table.shadowHead(db, key) == nil,
                let row = try table.row(db, key), shape.scope(ofKey: key, row) == scope
            else { return nil }
            return run(of: candidate, shape, id, row)
        }

        mutating func pack(_ candidate: Outbox.FinishedInsert, _ run: Run) throws {
            guard let packed = RecordID(candidate.record).map({ ManifestKey.encode($0) }) else { return }
            try Query(
                db, "INSERT INTO tidemark_finished(packed, run, operation) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING"
            ).execute([.blob(packed), .integer(runID(run, candidate.finishedAt)), .integer(candidate.id)])
            guard db.changesCount > 0 else { return }
            try Outbox.remove(db, id: candidate.id)
        }

        private mutating func run(
            of candidate: Outbox.FinishedInsert, _ shape: TableShape, _ id: RecordID, _ row: [Cell]
        ) -> Run? {
            var run = Run(
                scope: scope.name, entity: shape.name, lane: candidate.key.lane,
                number: candidate.key.number - candidate.id, version: candidate.version - candidate.id,
                epoch: last?.epoch, isSeed: last?.isSeed ?? false,
                fields: names(of: shape))
            if says(run, candidate, shape, id, row) { return note(run) }
            let entry = OutboxEntry(
                id: candidate.id, key: candidate.key, entity: candidate.entity, record: candidate.record,
                isDelete: false, members: candidate.members)
            guard let sealed = try? entry.sealedOperation() else { return nil }
            (run.epoch, run.isSeed) = (sealed.epoch, sealed.isSeed)
            return says(run, candidate, shape, id, row) ? note(run) : nil
        }

        private mutating func note(_ run: Run) -> Run {
            last = run
            return run
        }

        private func says(
            _ run: Run, _ candidate: Outbox.FinishedInsert, _ shape: TableShape, _ id: RecordID, _ row: [Cell]
        ) -> Bool {
            FinishedInserts.operation(run, shape, id, row)?.sealedMembers() == candidate.members
        }

        private mutating func names(of shape: TableShape) -> NameList {
            if let known = fields[shape.name] { return known }
            let declared = declarations.entity(shape.name)
            let names = NameList(shape.data.map(\.name).filter { !declared.isServerField($0) })
            fields[shape.name] = names
            return names
        }

        private mutating func runID(_ run: Run, _ now: Int64) throws -> Int64 {
            if let known = runs[run] { return known }
            let cells: [Cell] = [
                .text(run.scope), .text(run.entity), .text(run.lane), .integer(run.number), .integer(run.version),
                .optional(run.epoch), .integer(run.isSeed ? 1 : 0), .text(run.fields.text),
            ]
            let known = try Query(
                db,
                """
                SELECT id FROM tidemark_finished_run
                WHERE scope = ?1 AND entity = ?2 AND lane = ?3 AND number = ?4 AND version = ?5 AND epoch IS ?6
                  AND is_seed = ?7 AND fields = ?8 AND started_at > ?9
                """
            ).first(db, cells + [.integer(now - FinishedInserts.longestRun)]) { $0.integer(0) }
            if let known {
                try Query(db, "UPDATE tidemark_finished_run SET finished_at = max(finished_at, ?2) WHERE id = ?1")
                    .execute([.integer(known), .integer(now)])
                runs[run] = known
                return known
            }
            try Query(
                db,
                """
                INSERT INTO tidemark_finished_run(
                  scope, entity, lane, number, version, epoch, is_seed, fields, started_at, finished_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
                """
            ).execute(cells + [.integer(now)])
            let id = db.lastInsertedRowID
            runs[run] = id
            return id
        }
    }

    // MARK: Dropping

    /// Drops the runs of a scope that were finished a while ago.
    static func prune(_ db: Database, _ scope: Scope, before: Int64) throws {
        try Query(db, "DELETE FROM tidemark_finished_run WHERE finished_at < ?1 AND scope = ?2")
            .execute([.integer(before), .text(scope.name)])
        if db.changesCount > 0 { try dropOrphans(db) }
    }

    /// Drops the operations whose runs have gone.
    static func dropOrphans(_ db: Database) throws {
        try Query(db, "DELETE FROM tidemark_finished WHERE run NOT IN (SELECT id FROM tidemark_finished_run)").execute()
    }
}

extension Applier {
    /// Fills the operations of a record whose row is about to become another one of the server's.
    ///
    /// - Parameter version: of the row that comes.
    func fill(_ table: ApplyTable, _ id: @autoclosure () -> RecordID?, unless version: Version? = nil) throws {
        guard try hasFinished.get(), let id = id() else { return }
        try FinishedInserts(db: db).fill(table.shape, id, unless: version)
    }
}
