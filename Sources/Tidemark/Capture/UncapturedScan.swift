import GRDB
import TidemarkWire

/// Compares a table whose capture was gone for a while, or begins, with the manifest, row by row, and notes what was
/// written meanwhile. Runs in the transaction that puts the triggers there, so that no write falls between the two.
struct UncapturedScan {
    /// How many deletes, and updates, are taken for the user's without a question. More of them wait for a
    /// confirmation, and so do two deletes or more that have emptied the table, unless the app announced its migration.
    /// Inserts never wait.
    static let deleteBound = 100
    static let updateBound = 1000
    /// New rows that are collected before they are noted: a first capture may find all that the table holds.
    private static let notedTogether = 1024

    let db: Database
    let shape: TableSchema
    /// The columns that the manifest's hashes are made of; `nil` where there is no manifest.
    let columns: [String]?
    /// Whether the app said that it would write unseen (``SyncEngine/removeCapture(_:)``).
    let isAnnounced: Bool
    private let isFirst: Bool
    /// The kind of write that a row counts as if the manifest does not have it.
    private let newKind: Inferred.Kind
    private let retyping: Retyping

    /// - Parameters:
    ///   - isFirst: the table was never captured before.
    ///   - wasKept: rows of its first capture were still kept by their keys.
    init(
        _ db: Database, _ shape: TableSchema, _ record: CaptureRecord, isAnnounced: Bool, isFirst: Bool, wasKept: Bool
    ) throws {
        (self.db, self.shape, self.columns, self.isAnnounced) = (db, shape, record.columns, isAnnounced)
        retyping = try Retyping(db, shape, columns: record.columns, types: record.types)
        // Rows of the first capture that were not held against the server's yet are still that.
        self.isFirst = isFirst
        newKind = try isFirst || wasKept || Inferred.isAnySeed(db, shape.name) ? .seed : .insert
    }

    private var table: RecordTable { RecordTable(shape) }
    private var keyList: String { shape.key.map(\.sql).joined(separator: ", ") }

    func run() throws {
        try SealedRun.unfold(db, shape)
        try FirstCapture.forget(db, shape.name)
        let waiting = try self.waiting()
        let manifests = Dictionary(
            uniqueKeysWithValues: try Manifest.scopes(db, shape.name).map { scope in
                (scope, SeenManifest(Manifest(db: db, scope: scope, entity: shape.name)))
            })
        try markShadows(manifests, besides: waiting)
        if isFirst, manifests.isEmpty, case .constant(let scope) = shape.rule.kind,
            try FirstCapture.mayKeep(shape, db)
        {
            try beginFirst(in: scope)
        } else {
            try visitRows(manifests)
        }
        try visitQuarantined(manifests)
        for (scope, manifest) in manifests.sorted(by: { $0.key < $1.key }) { try noteMissing(scope, manifest) }
        try Inferred.requireConfirmation(db, shape.name, records: waiting)
        try brake(manifests)
        try retyping.end()
    }

    /// A second loss before the first was resolved: what is here now is what counts, but for the records that wait for
    /// a word, and go on waiting.
    private func waiting() throws -> Set<String> {
        let unconfirmed = Set(try Inferred.awaitingConfirmation(db, entity: shape.name).map(\.record))
        try Inferred.clearUncompared(db, shape.name)
        return unconfirmed
    }

    /// Marks records that were edited before, because they may have been edited again: a needless mark costs nothing.
    /// Records that wait for a confirmation get none.
    private func markShadows(_ manifests: [Scope: SeenManifest], besides waiting: Set<String>) throws {
        try Marks.announce(db)
        for key in try ShadowTable(shape).keys(db) {
            let row = try table.row(db, key)
            guard let id = shape.recordID(key) else {
                try table.mark(db, key)
                continue
            }
            if try row != nil || !QuarantinedRow.exists(db, shape.name, id.text) {
                try table.setGone(db, key, row == nil)
            }
            if !waiting.contains(id.text) { try table.mark(db, key) }
            var known: [Scope: UInt64] = [:]
            for (scope, manifest) in manifests { known[scope] = try manifest.see(id) }
            if columns != nil {
                try checkBase(key, id, row, known)
                try retype(key, id)
            }
        }
    }

    /// An edit that was captured on top of one that was not has a base that the server never had.
    private func checkBase(_ key: [Cell], _ id: RecordID, _ row: [Cell]?, _ known: [Scope: UInt64]) throws {
        guard let shadow = try table.shadow(db, key),
            let name = shadow.scope ?? row.flatMap({
                shape.scope(ofKey: key, $0)?.name
            }) ?? scopeOfAll, let scope = Scope(name)
        else { return }
        // Compared before: the record is gone, and nobody knows its row.
        if shadow.isRowUnknown, row == nil { return }
        switch (shadow.state, known[scope]) {
        case (.known, nil): try infer(newKind, scope, id, hash: nil)
        case (.known, let hash?):
            guard try hash != self.hash(id, shadow.cells) else { return }
            try infer(.update, scope, id, hash: hash)
        case (.absent, let hash?): try infer(.update, scope, id, hash: hash)
        case (.absent, nil), (.deleted, _): return
        }
    }

    /// Converts the base of an edit as the edit was converted, else each converted column would count as edited.
    private func retype(_ key: [Cell], _ id: RecordID) throws {
        guard var shadow = try table.shadow(db, key), shadow.state != .absent || shadow.seed != nil else { return }
        let cells = try retyping.after(shadow.cells)
        guard cells != shadow.cells else { return }
        shadow.cells = cells
        try table.writeShadow(db, key, shadow)
        if let scope = (shadow.scope ?? scopeOfAll).flatMap(Scope.init) {
            try RefetchQueue.note(db, scope, shape.name, id.text)
        }
    }

    private var scopeOfAll: String? {
        if case .constant(let scope) = shape.rule.kind { scope.name } else { nil }
    }

    private var compared: [Int] {
        shape.data.indices.filter { index in
            columns?.contains { $0.isSameName(as: shape.data[index].name) } ?? true
        }
    }

    private func hash(_ id: RecordID, _ cells: [Cell]) throws -> UInt64 {
        RowHash(shape).hash(
            PackedID.encode(id), compared.reduce(into: cells.map { _ in Cell.null }) { $0[$1] = cells[$1] })
    }

    private func visitRows(_ manifests: [Scope: SeenManifest]) throws {
        let compared = compared
        let isComplete = columns.map { $0.count == compared.count } ?? false
        let isWhole = isComplete && compared.count == shape.data.count
        let hasher = RowHash(shape)
        let isRow = shape.key.map { "s.\($0.sql) = +t.\($0.sql)" }.joined(separator: " AND ")
        let list = shape.columns.map { "t.\($0.sql)" }.joined(separator: ", ")
        let query = try Query(
            db,
            """
            SELECT \(list) FROM \(shape.sql) AS t
            WHERE \(ShadowTable(shape).noneSQL(where: isRow))
            ORDER BY \(shape.key.map { "t.\($0.sql)" }.joined(separator: ", "))
            """)
        query.bind([])
        defer { query.clear() }
        var rebased: [Scope: [[UInt8]: UInt64?]] = [:]
        var news: [Inferred.Entry] = []
        while try query.step(db) {
            if news.count >= Self.notedTogether {
                try Inferred.note(db, news)
                news.removeAll(keepingCapacity: true)
            }
            let key = query.cells(0..<shape.key.count)
            let cells = query.cells(shape.key.count..<shape.columns.count)
            guard let id = shape.recordID(key), let scope = shape.scope(ofKey: key, cells) else {
                try noteUnsent(key, cells)
                continue
            }
            let code = PackedID.encode(id)
            guard let known = try manifests[scope]?.see(id) else {
                news.append(entry(newKind, scope, id, hash: nil))
                continue
            }
            func hash(_ cells: [Cell]) -> UInt64 {
                hasher.hash(code, compared.reduce(into: cells.map { _ in Cell.null }) { $0[$1] = cells[$1] })
            }
            let before = try retyping.before(cells)
            let isCopied = before.map { hash($0) == known } ?? false
            if columns == nil || known != hash(cells) && !isCopied {
                try infer(.update, scope, id, hash: columns == nil ? nil : known)
            } else if !isWhole || isCopied {
                rebased[scope, default: [:]][code] = .some(hasher.hash(code, cells))
                // The old type may have held less than the server's value: `'007'` was 7.
                if isCopied { try RefetchQueue.note(db, scope, shape.name, id.text) }
            }
        }
        try Inferred.note(db, news)
        for (scope, changes) in rebased { try Manifest(db: db, scope: scope, entity: shape.name).update(with: changes) }
    }

    /// All rows of the table are of its first capture, but for those that cannot travel.
    private func beginFirst(in scope: Scope) throws {
        let query = try Query(db, "SELECT \(keyList) FROM \(shape.sql) ORDER BY \(keyList)")
        query.bind([])
        defer { query.clear() }
        var keys = try FirstCapture.Writer(db, shape, in: scope)
        while try query.step(db) {
            let key = query.cells(0..<shape.key.count)
            if shape.recordID(key) == nil { try noteUnsent(key, []) } else { try keys.append(key[0]) }
        }
        try keys.finish()
        try FirstCapture.begin(db, shape, in: scope)
    }

    /// A row that cannot travel is on this device only. One with a whole key gets a mark, so that the next sealing says
    /// why; one without is counted by the index for such rows.
    private func noteUnsent(_ key: [Cell], _ cells: [Cell]) throws {
        guard !key.contains(.null) else { return }
        var shadow = Shadow(state: .absent, cells: shape.data.map { _ in .null })
        shadow.mark = try Marks.next(db)
        if shape.isScopedByColumn { shadow.routingScope = shape.scope(ofKey: key, cells)?.name ?? "" }
        try table.writeShadow(db, key, shadow)
    }

    private func visitQuarantined(_ manifests: [Scope: SeenManifest]) throws {
        for (scope, manifest) in manifests {
            for record in try QuarantinedRow.records(db, shape.name, scope) {
                if let id = RecordID(record) { try manifest.see(id) }
            }
        }
    }

    private func noteMissing(_ scope: Scope, _ manifest: SeenManifest) throws {
        try manifest.visitUnseen { entry in
            guard let id = PackedID.decode(entry.key) else { return }
            try infer(.delete, scope, id, hash: entry.hash)
        }
    }

    private func infer(_ kind: Inferred.Kind, _ scope: Scope, _ id: RecordID, hash: UInt64?) throws {
        try Inferred.note(db, [entry(kind, scope, id, hash: hash)])
    }

    private func entry(_ kind: Inferred.Kind, _ scope: Scope, _ id: RecordID, hash: UInt64?) -> Inferred.Entry {
        Inferred.Entry(
            scope: scope.name, entity: shape.name, record: id.text, kind: kind, hash: hash, awaitsConfirmation: false)
    }

    /// Holds inferred edits for a confirmation if there are more of them than a user is likely to have made.
    private func brake(_ manifests: [Scope: SeenManifest]) throws {
        guard !isAnnounced, columns != nil else { return }
        let deletes = try Inferred.count(db, shape.name, .delete)
        let isEmpty = try Query(db, "SELECT 1 FROM \(shape.sql) LIMIT 1").first(db) { _ in true } == nil
        if deletes > Self.deleteBound || isEmpty && deletes > 1 {
            try Inferred.requireConfirmation(db, shape.name, .delete)
        }
        if try Inferred.count(db, shape.name, .update) > Self.updateBound {
            try Inferred.requireConfirmation(db, shape.name, .update)
        }
    }
}

/// A manifest that is gone through in much the order of its keys, and remembers which entries were seen.
private final class SeenManifest {
    private let manifest: Manifest
    private var current: Manifest.Stored?
    private var end: [UInt8]?
    private var seen: [Int64: Set<Int>] = [:]

    init(_ manifest: Manifest) { self.manifest = manifest }

    /// The record's hash; `nil` where the manifest does not have it.
    @discardableResult
    func see(_ id: RecordID) throws -> UInt64? {
        let key = PackedID.encode(id)
        if !isCurrent(key) {
            current = try manifest.range(of: key)
            end = try current.flatMap { try manifest.next(after: $0.first)?.first }
        }
        guard let current, let found = current.entries.find(key) else { return nil }
        seen[current.id, default: []].insert(found.index)
        return found.hash
    }

    private func isCurrent(_ key: [UInt8]) -> Bool {
        guard let current, !key.lexicographicallyPrecedes(current.first) else { return false }
        return end.map { key.lexicographicallyPrecedes($0) } ?? true
    }

    func visitUnseen(_ body: (ManifestRange.Entry) throws -> Void) throws {
        var last: [UInt8]?
        while let stored = try manifest.next(after: last) {
            last = stored.first
            let known = seen[stored.id] ?? []
            for (index, entry) in stored.entries.entries.enumerated() where !known.contains(index) { try body(entry) }
        }
    }
}
