import GRDB
import TidemarkCore
import TidemarkWire

/// Applies one answer inside one transaction: verdicts, then the page, then the checkpoint.
///
/// Capture is suppressed while it works, and foreign keys are off if it writes rows; see `ApplyTransaction`.
final class Applier {
    struct Outcome: Hashable, Sendable {
        var verdicts = 0
        /// Verdicts that only put an operation off.
        var deferred = 0
        /// The wait for room on the server, while edits are put off.
        var deferral: Deferral?
        /// Edits that applying made: inferred ones, orphaned ones, and one for each parent whose children it repaired.
        var editsMade = 0
        /// Operations that got another key.
        var sealedAgain = 0
        /// Records that the server has to be asked for by name.
        var refetch = 0
        var rejected = 0
        /// Open conflicts, and values of rows of the first capture, new columns and cascades that gave way.
        var conflicts = 0
        var received = 0
        /// The changes by entity, with their bytes.
        var bytes = EntityBytes()
        var applied = 0
        var quarantined = 0
        var skipped = 0
        var hasMore = false
        /// Whether a difference did not fit what is here, so that the page has to come again with whole rows.
        var wantsWhole = false
        /// Whether the page was taken; one that does not start where the checkpoint stands is not.
        var pageTaken = false
        /// Whether the page was a snapshot's last.
        var isFilled = false
        /// Rows that a repair left, since the server does not know them.
        var unsent: [RefetchQueue.Record] = []
        /// Records that differ after a repair, and why.
        var unrepaired: [RefetchQueue.Record: String] = [:]
    }

    let db: Database
    let scope: Scope
    let now: Int64
    let schema: SyncSchema
    private let declarations: Declarations
    /// `nil` where the server assigns no ids.
    let identity: Identity?
    /// Whether the app's tables may be written to, as they may while no foreign keys are guarded.
    var mayWriteRows = true
    var record: ScopeRecord
    var outcome = Outcome()
    /// Records whose operations were put off, and that were not edited since.
    var putOff: [(table: RecordTable, key: [Cell])] = []
    private(set) var tables = ByName<ApplyTable>()
    /// Versions above this are remembered one by one: a row's, and a verdict's.
    var rememberRowsAbove: Version = .max
    private(set) var rememberVerdictsAbove: Version = 0
    /// Whether versions above `complete` were remembered before this answer.
    private(set) var hadKnownVersions = false
    /// Whether rows waited to leave their scopes before this answer.
    private(set) var hadWaiting = false
    /// Whether lost operations are being replayed: then a record may have several.
    private(set) lazy var isReplaying = Result { try Outbox.isReplaying(db, scope) }
    /// The scope's taken operations that lie in blocks.
    private(set) lazy var packed = PackedEdits(db, scope)
    /// Whether records wait for others, or for the app's confirmation.
    private(set) lazy var hasNotes = Result { try BlockedEdits.isAny(db) || Inferred.isAny(db) }
    /// The lane of lost operations that were put off, once there is one, and what their numbers have become.
    var later: LaneNumbers?
    var movedLater: [OperationKey: Int64] = [:]
    /// Whether more pages of a first filling follow this one, with rows that others may wait for.
    var isFilling = false
    /// Operations that the server took, where they go into blocks at the end; `nil` where each is finished by itself.
    var taken: TakenOperations?
    /// The operations that this process has sealed in runs of the first capture.
    var seeds: [OperationKey: SealedSeed] = [:]
    /// Why records are fetched by name, where that is a repair.
    var repair: RecordRepair?
    /// Whether edits were refused before this answer.
    private(set) var hadRefusals = false
    /// The records whose server rows may be others now; `end` looks at them.
    var manifest = ManifestChanges()
    /// Records of which a verdict without room for the record has said less than the row that the answer may bring.
    var toldShortly: Set<RecordName> = []
    /// Entities whose changes were passed over.
    var passedOver: Set<SQLName> = []

    /// - Parameters:
    ///   - entities: the tables to write to; `nil`: all of the scope.
    ///   - keepsFirstCapture: whether no row is written or taken for the server's (``FirstCapture``).
    init(
        _ db: Database, schema: SyncSchema, record: ScopeRecord, declarations: Declarations, now: Int64,
        entities: Set<String>? = nil, keepsFirstCapture: Bool = false
    ) throws {
        if !keepsFirstCapture { try FirstCapture.materialize(db, schema, writing: record.scope) }
        self.db = db
        self.now = now
        self.record = record
        scope = record.scope
        self.schema = schema
        self.declarations = declarations
        identity = try Identity(db, schema, declarations)
        for shape in schema.shapes(in: scope) where entities?.contains(shape.name) ?? true {
            tables[shape.name] = ApplyTable(shape, in: scope, declared: declarations.entity(shape.name))
        }
    }

    func apply(_ answer: Answer, since: String?) throws {
        let next = answer.page.flatMap { record.checkpoint == since ? $0 : nil }
        if let epoch = answer.epoch ?? next?.epoch { try goOn(in: epoch) }
        // A scope that is being filled takes no other page: its checkpoint waits for the snapshot's end.
        let page = record.bootstrap == nil ? next : nil
        let isFirst = page != nil && record.complete == nil && record.checkpoint == nil
        if isFirst { record.origin = page?.head }
        if let page {
            rememberRowsAbove = page.hasMore ? (record.complete == nil ? record.base : -1) : page.head
            rememberVerdictsAbove = page.hasMore ? record.base : page.head
        } else {
            rememberVerdictsAbove = record.base
        }
        hadKnownVersions = try !KnownVersions.isEmpty(db, scope)
        hadWaiting = try QuarantinedRow.isAnyWaiting(db)
        hadRefusals = try Outbox.hasRefusals(db)
        try substituteIDs(answer.results)
        try dropRuns(answer.results)
        for result in answer.results { try applyVerdict(result.key, result.verdict) }
        if let page {
            try applyPage(page, body: answer.body)
        } else {
            try resolveUniqueValues()
        }
        try finishTaken()
        if let syncedAt = answer.syncedAt { try hear(of: syncedAt) }
        try record.write(db)
        try waitForRoom(answer)
        try finish()
    }

    /// Edits that the server has no room for wait, and edits that depend on them do too.
    private func waitForRoom(_ answer: Answer) throws {
        let full = answer.results.lazy.compactMap(\.verdict.refusal).first { $0.code == RejectionCode.quotaExceeded }
        if let full {
            try Deferral.begin(db, scope, full, putOff, now: now)
        } else {
            guard try Deferral.read(db, scope) != nil else { return }
            // Edits that depend on a waiting edit may be answered in a later request than that edit.
            try Deferral.putOff(db, putOff)
            try Deferral.end(db, schema, scope)
        }
        outcome.deferral = try Deferral.read(db, scope)
    }

    func declared(_ entity: String) -> EntityDeclaration { declarations.entity(entity) }

    /// Ends the transaction, when rows, shadows and quarantined rows are final.
    func finish() throws {
        try TriggerGuard(db: db, schema: schema).restore()
        try manifest.write(db, schema, scope)
    }

    /// Goes on in the epoch of an answer. If the epoch changed and does not hold the versions remembered beyond the
    /// checkpoint, of which the server knows nothing, the scope is filled anew, and lost operations are probed for.
    func goOn(in epoch: String) throws {
        if let known = record.epoch, known != epoch, Epoch(text: known)?.isBeforeAll != true {
            let history = HistoryReset(db: db, schema: schema)
            if record.isFilled {
                if try !isKept(of: known, in: epoch) {
                    try beforeWritingRows()
                    try history.forget(&record, after: record.complete ?? 0)
                    try Bootstrap.begin(db, scope, asking: known, hasLost: true)
                    record.bootstrap = try Bootstrap.read(db, scope)
                }
            } else if record.bootstrap?.token == nil, try !record.isNew || !isKept(of: known, in: epoch) {
                // Before the first page of a filling, the epoch is all that this device knows of the history.
                try beforeWritingRows()
                try history.forget(&record, after: 0)
                try Bootstrap.begin(db, scope, asking: record.bootstrap?.asking ?? known)
            }
        }
        record.epoch = epoch
    }

    /// Goes on in a history where all that is known here is in it too; elsewhere nothing changes, and it is `false`.
    func goOnWhereKept(in epoch: String) throws -> Bool {
        if let old = record.epoch {
            guard Epoch.contains(record.base, of: old, in: epoch), try isKept(of: old, in: epoch) else { return false }
        }
        record.epoch = epoch
        try record.write(db)
        return true
    }

    /// Whether what is remembered one by one of a history is in another one too.
    private func isKept(of known: String, in epoch: String) throws -> Bool {
        guard let newest = try KnownVersions.newest(db, scope) else { return true }
        return Epoch.contains(newest, of: known, in: epoch)
    }

    /// Moves the clock past the answer, so that later edits get later stamps than all that the answer could tell.
    private func hear(of syncedAt: Int64) throws {
        record.syncedAt = max(syncedAt, record.syncedAt ?? 0)
        var clock = HybridClock(last: EditStamp(packed: try Marks.clock(db)))
        clock.receive(EditStamp(milliseconds: syncedAt))
        try Marks.setClock(db, clock.last.packed)
    }

    /// Refuses to go on where this transaction may not write to the app's tables: called before any such write.
    func beforeWritingRows() throws { if !mayWriteRows { throw RowsToWrite() } }

    private func applyPage(_ page: Answer.Page, body: [UInt8]) throws {
        try body.withUnsafeBytes { try applyChanges(UnsafeRawBufferPointer(rebasing: $0[page.changes])) }
        try resolveUniqueValues()
        record.checkpoint = page.nextSince
        record.head = max(page.head, record.head ?? 0)
        record.isScanning = page.hasMore
        if !page.hasMore { try endScan(at: page.head) }
        outcome.hasMore = page.hasMore
        outcome.pageTaken = true
    }

    /// Applies an array of changes; one that names a snapshot's rows also notes which those are.
    func applyChanges(_ changes: UnsafeRawBufferPointer, noting seen: SeenRecords? = nil) throws {
        let hasKnownVersions = try !KnownVersions.isEmpty(db, scope)
        // A replayed edit may be of a row that has no shadow yet (`overlayReplayed`).
        let isOverlaid = try isReplaying.get()
        for table in tables.values {
            try table.begin(db, mayBePlain: !hasKnownVersions && !(isOverlaid && table.shape.isScopedByColumn))
        }
        var reader = JSONReader(changes)
        try reader.enterArray()
        while try reader.nextElement() {
            outcome.received += 1
            try beforeWritingRows()
            let start = reader.index
            guard let change = try IncomingChange.read(from: &reader) else {
                outcome.skipped += 1
                continue
            }
            // A snapshot's page may be read again for each entity in it (Swap).
            if seen == nil { outcome.bytes.add(change, in: reader, bytes: reader.index - start) }
            try applyChange(change, reader, noting: seen)
        }
        // The statements point into the page's bytes, which end here.
        for table in tables.values { table.end() }
    }

    private func endScan(at head: Version) throws {
        record.complete = max(head, record.complete ?? 0)
        record.origin = nil
        record.lastSync = now
        try KnownVersions.drop(db, scope, upTo: head)
    }

    private var lastTable: ApplyTable?

    private func table(_ change: IncomingChange, _ reader: JSONReader) -> ApplyTable? {
        let name = reader.bytes[change.entity.range]
        // Pages come in runs of one entity.
        if let lastTable, lastTable.name.elementsEqual(name) { return lastTable }
        lastTable = tables[reader.string(change.entity)]
        return lastTable
    }

    // MARK: One change

    private func applyChange(_ change: IncomingChange, _ reader: JSONReader, noting seen: SeenRecords?) throws {
        switch change.kind {
        case .upsert, .delete:
            guard let table = table(change, reader) else {
                try passOver(change, reader)
                break
            }
            try seen?.note(change, table, reader)
            return try applyRecordChange(change, table, reader)
        case .idmap: if try substitute(change, reader) { return }
        case .absent, .unknown: break
        }
        outcome.skipped += 1
    }

    private func applyRecordChange(_ change: IncomingChange, _ table: ApplyTable, _ reader: JSONReader) throws {
        // A delete that came ahead of its page was listed when it came.
        if change.kind == .delete, let base = change.base,
            try change.version > KnownVersions.version(db, scope, table.shape.name, reader.string(change.id)) ?? -1
        {
            try noteLostEdits(table, reader.string(change.id), unseenSince: base, version: change.version)
        }
        if table.isPlain, !isQuarantining(table), change.patches == nil,
            try table.applyPlain(change, reader, db, noting: &manifest)
        {
            if change.version > rememberRowsAbove { try remember(change, table, reader) }
            outcome.applied += 1
            return
        }
        guard let id = RecordID(reader.string(change.id)), let key = table.shape.key(of: id) else {
            return try takeMisfitOfPage(change, table, reader)
        }
        let known = try KnownVersions.version(db, scope, table.shape.name, id.text) ?? -1
        // The same version again is the same row, but for one that a verdict made of what a lost history had left here.
        guard change.version >= known else { return try queueForRefetchIfFilled(table, id) }
        if change.version > rememberRowsAbove { try remember(change, table, reader) }
        let incoming = change.kind == .delete ? nil : try cells(change, table, id, key, reader)
        try receive(
            table, id, key, version: change.version, known: known, incoming: incoming, isMove: change.isMove)
    }

    /// A snapshot's row is older than an edit that the server took while the scope was being filled. That edit lies on
    /// the row that this device had before, which may come from a lost history: the record is asked for by name.
    private func queueForRefetchIfFilled(_ table: ApplyTable, _ id: RecordID) throws {
        guard record.bootstrap != nil else { return }
        try RefetchQueue.note(db, scope, table.shape.name, id.text)
        outcome.refetch += 1
    }

    /// Takes in what the server says of one record: its row, or that it was deleted.
    ///
    /// - Parameter isMove: a delete: the record lives on in another scope.
    func receive(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], version: Version, known: Version,
        incoming: [Int: Cell]?, isMove: Bool
    ) throws {
        manifest.look(table.shape.name, id)
        try overlayReplayed(table, id, key)
        if try quarantineForOtherScope(table, id, key, version: version, incoming: incoming) {
            outcome.applied += 1
            return
        }
        // The children of a parent that moved away stay with it, wherever it is.
        if incoming == nil, !isMove {
            try keepDeleted(table, id, key)
            try noteTombstone(table, id, key, version: version)
        }
        if let shadow = try table.records.shadow(db, key) {
            guard version >= shadow.version ?? -1 || shadow.state == .deleted else { return }
            try rebase(table, id, key, shadow, version: version, known: known, incoming: incoming)
        } else {
            try applyServerRow(table, id, key, version: version, incoming: incoming)
        }
        outcome.applied += 1
    }

    private func remember(_ change: IncomingChange, _ table: ApplyTable, _ reader: JSONReader) throws {
        try KnownVersions.note(
            db, scope, table.shape.name, reader.string(change.id), change.version, deleted: change.kind == .delete)
    }

    /// A record without edits becomes what the server says.
    func applyServerRow(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], version: Version, incoming: [Int: Cell]?
    ) throws {
        let (current, isQuarantined) = try visible(table, id, key, nil)
        var serverRow = Shadow(state: current == nil ? .absent : .known, cells: current ?? [])
        if let incoming { serverRow.update(with: incoming, version: version, shape: table.shape, current: current) }
        try put(
            table, id, key, from: current, isQuarantined: isQuarantined, to: incoming == nil ? nil : serverRow.cells,
            version: version)
    }

    // MARK: Putting rows on screen

    /// Makes the visible row what it should be. A row that the schema refuses is quarantined; its old image goes.
    func put(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], from current: [Cell]?, isQuarantined: Bool, to new: [Cell]?,
        version: Version?, isPending: Bool = false
    ) throws {
        if let new, !isPending, table.shape.scope(ofKey: key, new) != scope {
            return try quarantineForItsColumn(
                table, id, key, new, isOnScreen: current != nil && !isQuarantined, version: version)
        }
        guard new != current || isQuarantined && new == nil else {
            // A trigger of the app's may have made it so: what was noted before does not stand any more.
            return try table.records.noteIntended(db, key, isQuarantined ? nil : new)
        }
        guard let new else {
            if isQuarantined { return try QuarantinedRow.remove(db, table.shape.name, id.text, scope.name) }
            return try table.records.deleteRow(db, key)
        }
        if isQuarantined {
            return try QuarantinedRow.put(
                db, table.shape, record: id.text, scope: scope.name, version: version, cells: new,
                reason: "Waiting for its place.", contends: true)
        }
        if current == nil, isQuarantining(table) { return try quarantineUntilFilled(table, id, new, version: version) }
        do {
            try table.records.writeRow(db, key, new)
            table.noteOutcome(nil)
        } catch let error as DatabaseError where error.refusesRow {
            table.noteOutcome(error)
            if current != nil { try table.records.attemptDelete(db, key) }
            try quarantine(table, id, new, version: version, error)
        }
    }

    func noteTombstone(_ table: ApplyTable, _ id: RecordID, _ key: [Cell], version: Version) throws {
        guard !table.shape.children.isEmpty else { return }
        try CascadeRepair(db: db, scope: scope, now: now).noteDeletedParent(table.records, id, key, version: version)
    }
}
