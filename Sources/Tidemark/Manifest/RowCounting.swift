import GRDB
import TidemarkWire

/// Counts one table's rows by what the file notes of them: the manifest's total, and what is not as it says.
struct RowCounting {
    let db: Database
    let shape: TableSchema

    private var table: RecordTable { RecordTable(shape) }

    /// The rows that are in the table, by a scan.
    func counted() throws -> Int { try count(shape.sql) }

    /// As the triggers have noted it.
    func noted() throws -> SyncStatus.Rows {
        var rows = SyncStatus.Rows()
        let shadows = ShadowTable(shape)
        let edited = try shadows.countEdited(db)
        let known = try shadows.countKnown(db)
        let gone = try shadows.countDeletes(db)
        let quarantined = try self.quarantined()
        let unseen = try self.unseen()
        let undecided = try self.undecided()
        let blocked = try blockedEdits()
        let unsent = try self.unsent()
        let manifested = try Manifest.count(db, shape.name)
        rows.unable = unsent + (try unnamed())
        rows.stalled = blocked + unseen.stalled + undecided
        rows.outgoing = edited - unsent - blocked - unseen.stalledEdited + unseen.outgoing
        rows.confirmed = manifested - known - quarantined.base - unseen.known - undecided
        rows.deletes =
            try max(0, gone - quarantined.edited) + unseen.deletes + braked() + QuarantinedRow.leaving(db, shape.name)
        rows.quarantined = quarantined.count
        return rows
    }

    private func count(_ source: String) throws -> Int { try Query.count(db, "SELECT count(*) FROM \(source)") }

    /// Rows without a value in some column of their key: an index holds just those.
    private func unnamed() throws -> Int {
        guard let index = shape.unnamedIndex, try db.indexExists(index, on: shape.name) else { return 0 }
        return try count("\(shape.sql) INDEXED BY \(quoted(index)) WHERE \(shape.isUnnamedSQL)")
    }

    /// The rows without a value in some column of their key, and those columns; `nil` where there are none.
    func nameless() throws -> (rows: Int, columns: [String])? {
        let rows = try unnamed()
        guard rows > 0, let index = shape.unnamedIndex else { return nil }
        let source = "\(shape.sql) INDEXED BY \(quoted(index)) WHERE (\(shape.isUnnamedSQL))"
        return (rows, try shape.key.filter { try count("\(source) AND \($0.sql) IS NULL") > 0 }.map(\.name))
    }

    /// Counts the rows of the table that this device refused to send.
    private func unsent() throws -> Int {
        try Set(Outbox.localRefusals(db, entity: shape.name)).filter { record in
            guard let key = KeyText.key(of: record, in: shape), try table.row(db, key) != nil else { return false }
            return try table.shadowHead(db, key).map { $0.mark == nil } ?? false
        }.count
    }

    /// Deletes that the server's brake refused: they wait for a word, and their rows are here.
    private func braked() throws -> Int {
        try Outbox.refusedDeletes(db, entity: shape.name, code: RejectionCode.deleteBrake)
    }

    /// Edits that are not sent while the insert of a record that they refer to is refused.
    private func blockedEdits() throws -> Int {
        try BlockedEdits.records(db, shape.name).filter { try isEdited($0) }.count
    }

    private func isEdited(_ record: String) throws -> Bool {
        guard let key = RecordID(record).flatMap({ shape.key(of: $0) }), try table.row(db, key) != nil else {
            return false
        }
        return try table.shadowHead(db, key) != nil
    }

    /// Records with an open conflict whose row is the server's. One that was edited since, unseen or not, is on its way
    /// like any other.
    private func undecided() throws -> Int {
        try Conflicts.openRecords(db, shape.name).filter { record in
            guard try !Inferred.isUncompared(db, shape.name, record),
                let key = RecordID(record).flatMap({ shape.key(of: $0) })
            else { return false }
            return try table.row(db, key) != nil && table.shadowHead(db, key) == nil
        }.count
    }

    /// Rows outside the table, those of them that the manifest has and no shadow tells of, and those with edits.
    private func quarantined() throws -> (count: Int, base: Int, edited: Int) {
        let rows = try QuarantinedRow.all(db, shape.name)
        var (base, edited) = (0, 0)
        for row in rows {
            guard let key = RecordID(row.record).flatMap({ shape.key(of: $0) }) else { continue }
            if let shadow = try table.shadowHead(db, key) {
                if try table.isServersRow(db, key, shadow, quarantinedIn: row.scope) {
                    base += 1
                } else if try !shadow.isGone && shadow.state != .absent && table.row(db, key) == nil {
                    edited += 1
                }
            } else if let cells = try table.row(db, key), shape.scope(ofKey: key, cells)?.name == row.scope {
                continue
            } else {
                base += 1
            }
        }
        return (rows.count { !$0.isLeaving }, base, edited)
    }

    private struct Unseen {
        var outgoing = 0
        var stalled = 0
        /// The stalled records that have a shadow already.
        var stalledEdited = 0
        /// The records that the manifest has and no shadow tells of.
        var known = 0
        var deletes = 0
    }

    /// Counts the writes that were made while nothing was captured, and are no edits yet.
    private func unseen() throws -> Unseen {
        var unseen = try seeds()
        let sealed = try SealedRun.left(db, shape)
        unseen.outgoing += sealed.untouched
        unseen.known -= sealed.touched
        for entry in try Inferred.allButSeeds(db, shape.name) {
            guard let key = RecordID(entry.record).flatMap({ shape.key(of: $0) }) else { continue }
            let shadow = try table.shadowHead(db, key)
            let isHere = try table.row(db, key) != nil
            if entry.isCompared {
                // A later edit of it lets it go.
                guard isHere, shadow != nil, shadow?.mark == nil else { continue }
                unseen.stalled += 1
                unseen.stalledEdited += 1
                continue
            }
            // A shadow's base is wrong where a captured edit was made on top of one that was not captured.
            unseen.known += (entry.kind.isNew ? 0 : 1) - (shadow?.isRowKnown == true ? 1 : 0)
            guard shadow == nil else {
                // A row that was made and taken away again is no delete.
                if entry.kind.isNew, shadow?.isRowKnown == true, !isHere { unseen.deletes -= 1 }
                continue
            }
            if !isHere {
                unseen.deletes += 1
            } else if entry.awaitsConfirmation {
                unseen.stalled += 1
            } else {
                unseen.outgoing += 1
            }
        }
        return unseen
    }

    /// Rows of the first capture that were not held against the server's yet. There may be very many, and only those
    /// that were edited since have a shadow.
    private func seeds() throws -> Unseen {
        var unseen = Unseen()
        let first = try FirstCapture.left(db, shape.name)
        if first.untouched + first.touched > 0 {
            (unseen.outgoing, unseen.known) = (first.untouched, -first.touched)
            return unseen
        }
        unseen.outgoing = try Inferred.countSeeds(db, shape.name)
        guard unseen.outgoing > 0 else { return unseen }
        let edited = try editedSeeds()
        unseen.outgoing -= edited.count
        unseen.known -= edited.count { $0.state == .known }
        return unseen
    }

    /// The rows of the first capture that were edited before they were held against the server's: each is one pending
    /// record, although it is noted as such a row and has a mark.
    func markedSeeds() throws -> Int {
        guard try Inferred.isAnySeed(db, shape.name) else { return 0 }
        return try editedSeeds().count { $0.mark != nil }
    }

    private func editedSeeds() throws -> [Shadow] {
        try ShadowTable(shape).keys(db).compactMap { key in
            guard let id = shape.recordID(key), try Inferred.isSeed(db, shape.name, id.text) else { return nil }
            return try table.shadowHead(db, key)
        }
    }
}

extension TableSchema {
    /// The index over rows without a value in some column of their key; `nil` where the schema forbids those.
    var unnamedIndex: String? { mayLackKey ? "tidemark_unnamed_" + name : nil }

    var isUnnamedSQL: String { key.map { "\($0.sql) IS NULL" }.joined(separator: " OR ") }
}
