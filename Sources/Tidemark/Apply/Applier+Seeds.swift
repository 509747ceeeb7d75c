import Foundation
import GRDB
import TidemarkWire

// MARK: - Rows that stood in a table when it was captured for the first time

extension Applier {
    /// Makes all rows of the first capture inserts, in one go, because nothing was ever written to the scope on the
    /// server. Returns how many became edits; a table whose rows have waited together counts as one.
    func insertSeeds() throws -> Int {
        guard record.isNew, record.complete == nil else { return 0 }
        var made = 0
        for table in tables.values.sorted(by: { $0.shape.name < $1.shape.name }) {
            let shape = table.shape
            guard try Manifest(db: db, scope: scope, entity: shape.name).next(after: nil) == nil else { continue }
            // An event that was deleted is not sent.
            if declared(shape.name).kind == .events { try FirstCapture.takeApart(db, shape) }
            if try FirstCapture.end(db, shape, in: scope) { made += 1 }
            guard try Inferred.isAnySeed(db, shape.name) else { continue }
            // Rows that were edited since have a shadow, and are treated by themselves.
            for entry in try Inferred.touchedSeeds(db, scope, shape) {
                made += try resolve(entry, .absent, isBelowFloor: false) ? 1 : 0
            }
            // Removing the seeds first frees pages of the file for a part of their shadows.
            made += try Inferred.removeSeeds(db, scope, shape.name)
            try FirstCapture.insertSeeds(db, shape, in: scope)
        }
        return made
    }

    /// The server's row stands over a row of the first capture, because nothing tells which of the two is newer. An
    /// edit that was captured since is an edit of the server's row.
    func giveWay(_ unseen: Unseen, version: Version, _ cells: [Int: Cell]) throws {
        let found = try unseen.table.records.shadow(db, unseen.key)
        guard var shadow = found ?? unseen.current.map({ Shadow(state: .known, cells: $0, edited: Shadow.seedStamp) })
        else { return try takeServers(unseen, version: version, cells) }
        if shadow.state == .known { (shadow.state, shadow.bases[Shadow.seedBase]) = (.absent, 0) }
        let known = try KnownVersions.version(db, scope, unseen.shape.name, unseen.id.text) ?? -1
        let version = try noteKnownVersion(unseen, version, isDeleted: false)
        try rebase(unseen.table, unseen.id, unseen.key, shadow, version: version, known: known, incoming: cells)
        outcome.editsMade += 1
    }

    /// Turns a row of the first capture, of which the server has not heard, into an edit of the server's row. The edit
    /// holds what was edited since and the fields that the server's row lacks; values that give way are listed as a
    /// conflict.
    func giveWay(
        _ known: Shadow, _ table: ApplyTable, _ id: RecordID, current: [Cell]?, to incoming: [Int: Cell]?,
        version: Version
    ) throws -> Shadow {
        guard let seed = known.seed, let incoming else { return known }
        let shape = table.shape
        var theirs = incoming
        var shadow = known.answered
        // The row was made without a look at the server's row.
        (shadow.state, shadow.version) = (.known, 0)
        for index in shape.data.indices where table.isLacking(index) {
            theirs[index] = nil
            shadow.cells[index] = shape.data[index].defaultCell
            guard let current, current[index] != shadow.cells[index] else { continue }
            shadow.bases[shape.data[index].name] = version
            shadow.mark = try shadow.mark ?? Marks.next(db)
            shadow.since = shadow.since ?? now
        }
        guard let current else { return shadow }
        let standing = seed.indices.map { theirs[$0] ?? seed[$0] }
        var conflict = Conflict(seed: seed, of: shape, id, in: scope, under: standing, at: now)
        conflict.fields.removeAll { field in shape.dataIndex(field.name).map { seed[$0] != current[$0] } ?? false }
        if !conflict.fields.isEmpty {
            conflict.version = version
            try Conflicts.add(db, conflict)
            outcome.conflicts += 1
        }
        return shadow
    }

    /// A row that the server does not have is sent as it was, and what was edited since after that.
    func seed(_ unseen: Unseen, _ known: Shadow?) -> Shadow {
        var shadow = known ?? Shadow(state: .known, cells: unseen.current ?? [], edited: Shadow.seedStamp)
        if shadow.state == .known { shadow.bases = [Shadow.seedBase: 0] }
        shadow.state = .absent
        return shadow
    }

    /// The deletion stands. An edit that was captured since is an edit of the deleted record; a row that was moved is
    /// orphaned, since no page of this scope would find it where it stands.
    func giveWay(_ unseen: Unseen, toDeletion version: Version) throws {
        guard var shadow = try unseen.table.records.shadow(db, unseen.key), shadow.state == .known else {
            try noteGone(unseen, version: version)
            return try takeServers(unseen, version: version, nil)
        }
        if let current = unseen.current, unseen.shape.scope(ofKey: unseen.key, current) != scope {
            try orphan(unseen, "It was deleted elsewhere.")
            return try takeServers(unseen, version: version, nil)
        }
        shadow.version = 0
        let version = try noteKnownVersion(unseen, version, isDeleted: true)
        try rebase(unseen.table, unseen.id, unseen.key, shadow, version: version, known: -1, incoming: nil)
        outcome.editsMade += 1
    }

    /// A row of the first capture whose record was deleted elsewhere.
    func noteGone(_ unseen: Unseen, version: Version) throws {
        guard let seed = unseen.current else { return }
        var conflict = Conflict(seed: seed, of: unseen.shape, unseen.id, in: scope, under: nil, at: now)
        conflict.version = version
        try Conflicts.add(db, conflict)
        outcome.conflicts += 1
    }
}

extension Conflict {
    /// Makes the conflict of a row that is older than its table's capture and gives way to the server's row, or to its
    /// deletion.
    init(
        seed: [Cell], of shape: TableSchema, _ id: RecordID, in scope: Scope, under theirs: [Cell]?, at now: Int64
    ) {
        let fields = shape.data.indices.filter { seed[$0] != theirs?[$0] }.map { index in
            Field(
                name: shape.data[index].name, mine: seed[index].value, theirs: theirs?[index].value,
                result: theirs?[index].value)
        }
        self.init(
            id: 0, scope: scope, entity: shape.name, record: id.text, rule: .firstCapture, fields: fields,
            noticedAt: Date(milliseconds: now))
        isDeletedElsewhere = theirs == nil
        whole = shape.values(seed)
    }
}
