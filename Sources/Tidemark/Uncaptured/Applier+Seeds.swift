import GRDB
import TidemarkWire

// MARK: - Rows that stood in a table when it was captured for the first time

extension Applier {
    /// Nothing was ever written to the scope on the server: all rows of the first capture are inserts, in one go.
    /// Returns how many records were settled.
    func insertSeeds() throws -> Int {
        guard record.isNew, record.complete == nil else { return 0 }
        var settled = 0
        for table in tables.values.sorted(by: { $0.shape.name < $1.shape.name }) {
            let shape = table.shape
            guard try Inferred.isAnySeed(db, shape.name),
                try Manifest(db: db, scope: scope, entity: shape.name).next(after: nil) == nil
            else { continue }
            // What was edited since has a shadow, and is looked at by itself.
            for entry in try Inferred.touchedSeeds(db, scope, shape) {
                settled += try settle(entry, .absent, isBelowFloor: false) ? 1 : 0
            }
            try noteSeeds(shape)
            settled += try Inferred.removeSeeds(db, scope, shape.name)
        }
        return settled
    }

    /// Makes all rows of the scope that have no shadow inserts of rows that are older than their capture.
    private func noteSeeds(_ shape: TableShape) throws {
        let row = shape.columns.map { "t.\($0.sql)" }.joined(separator: ", ")
        let isRow = shape.key.map { "s.\($0.sql) = +t.\($0.sql)" }.joined(separator: " AND ")
        try db.execute(sql: CaptureTriggers.count)
        try db.execute(
            sql: """
                INSERT INTO \(shape.shadowSQL)(
                  \(shape.columns.map(\.sql).joined(separator: ", ")), tidemark_state, tidemark_bases, tidemark_mark,
                  tidemark_since, tidemark_edited, tidemark_scope, tidemark_place)
                SELECT \(row), \(Shadow.State.absent.rawValue), \(literal(Shadow.seedBases)),
                  (SELECT n FROM tidemark_counter),
                  \(now), \(Shadow.seedStamp), \(shape.scopeSQL("t")), \(shape.scopeSQL("t"))
                FROM \(shape.sql) AS t
                WHERE \(shape.isInSQL(scope, "t")) AND \(shape.isNamedSQL("t"))
                  AND NOT EXISTS (SELECT 1 FROM \(shape.shadowSQL) AS s WHERE \(isRow))
                """)
    }

    /// Whether a row of the first capture says more than the server's nobody knows: the server's stands. What was
    /// edited in sight since is an edit of that.
    func giveWay(_ unseen: Unseen, to whole: [Cell], version: Version, _ cells: [Int: Cell]) throws {
        let found = try unseen.table.records.shadow(db, unseen.key)
        try noteSeed(unseen, against: whole, version: version, shadow: found)
        guard var shadow = found else { return try takeServers(unseen, version: version, cells) }
        // It was made without a look at the server's row.
        if shadow.state == .known { shadow.version = 0 }
        let ahead = try Ahead.version(db, scope, unseen.shape.name, unseen.id.text) ?? -1
        let version = try noteAhead(unseen, version, isDeleted: false)
        try rebase(unseen.table, unseen.id, unseen.key, shadow, version: version, ahead: ahead, incoming: cells)
        outcome.settled += 1
    }

    /// A row that the server does not have is sent as it was, and what was edited since after that.
    func seed(_ unseen: Unseen, _ known: Shadow?) -> Shadow {
        var shadow = known ?? Shadow(state: .known, cells: unseen.current ?? [], edited: Shadow.seedStamp)
        if shadow.state == .known { shadow.bases = [Shadow.seedBase: 0] }
        shadow.state = .absent
        return shadow
    }

    /// What gives way is listed as a conflict that can be undone.
    func noteSeed(
        _ unseen: Unseen, against theirs: [Cell]?, version: Version, shadow: Shadow? = nil
    ) throws {
        guard let current = unseen.current else { return }
        let seed = shadow.map { $0.state == .known ? $0.cells : current } ?? current
        var conflict = Conflict(seed: seed, of: unseen.shape, unseen.id, in: scope, under: theirs, at: now)
        // What was edited since is sent.
        conflict.fields.removeAll { field in
            unseen.shape.dataIndex(field.name).map { seed[$0] != current[$0] } ?? false
        }
        guard !conflict.fields.isEmpty || theirs == nil else { return }
        conflict.version = version == .max ? nil : version
        try Conflicts.note(db, conflict)
        outcome.conflicts += 1
    }
}

extension Conflict {
    /// What a row said that is older than its table's capture, where the server's row stands, or its deletion.
    init(
        seed: [Cell], of shape: TableShape, _ id: RecordID, in scope: Scope, under theirs: [Cell]?, at now: Int64
    ) {
        let fields = shape.data.indices.filter { seed[$0] != theirs?[$0] }.map { index in
            Field(
                name: shape.data[index].name, mine: seed[index].value, theirs: theirs?[index].value,
                result: theirs?[index].value)
        }
        self.init(
            id: 0, scope: scope, entity: shape.name, record: id.text, rule: .firstCapture, fields: fields,
            noticedAt: now)
        isDeletedElsewhere = theirs == nil
        whole = shape.values(seed)
    }
}
