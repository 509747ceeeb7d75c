package import GRDB
package import TidemarkCore
import TidemarkWire

/// Reads from the file how records stand, as ``RecordMachine`` says it: all its regions from all tables. What an app
/// asks of a record is answered from fewer tables (``RecordState``). The worlds of the simulator hold what they find
/// against the machine.
package struct RecordMachines {
    /// A record in a scope.
    package struct Name: Hashable, Sendable {
        package var table: String
        /// Its id on the wire.
        package var record: String
        /// The scope's name.
        package var scope: String
    }

    /// Where all records stand, and what is on its way.
    package struct Reading: Sendable {
        package var machines: [Name: RecordMachine] = [:]
        /// The tables that could be read. A migration may have taken one away, or changed it, with no installation
        /// since.
        package var tables: Set<String> = []
        /// The tables among them that may have been written to unseen. Their rows that are missing are left out.
        package var uncaptured: Set<String> = []
        /// The records of the open operations, by the operation's place in the outbox.
        package var operations: [Int64: Name] = [:]
    }

    /// The source of the tables and declarations; after a change of it they are read anew.
    private let source: Source
    let shapes: [TableSchema]
    let declarations: Declarations
    /// Tables whose ids the server assigns.
    private let assigned: Set<String>

    private struct Source: Hashable {
        var schemaVersion: Int64
        var rules: [String: SyncedTable.ScopeRule]
        var declarations: String?
        var assigned: Set<String> = []

        init(_ db: Database) throws {
            schemaVersion = try SyncSchema.version(db)
            rules = try TableRules.all(db)
            guard !rules.isEmpty else { return }
            declarations = try KeptDeclarations.tag(db)
            assigned = Set(try SyncedTable.declared(in: db).filter { $0.ids == .server }.map(\.name))
        }
    }

    /// Reads the tables that the file knows, by the rules that they were captured with.
    package init(_ db: Database) throws {
        source = try Source(db)
        // A table that is gone, or that cannot be synced as it is now, is left out.
        shapes = try source.rules.sorted { $0.key < $1.key }.compactMap { name, rule in
            try TableSchema.supported(db, table: name, rule: rule)
        }
        let kept = source.declarations == nil ? nil : try KeptDeclarations.read(db)
        declarations = kept?.declarations ?? Declarations()
        assigned = source.assigned.union(declarations.entities.filter { $0.ids == .server }.map(\.name))
    }

    func isTemporary(_ name: Name) -> Bool { assigned.contains(name.table) && TemporaryShape.matches(name.record) }

    /// Whether the tables and declarations are still those that were read.
    package func isCurrent(_ db: Database) throws -> Bool { try Source(db) == source }

    /// Where a record of a scope stands.
    ///
    /// - Returns: `nil` where the table is not one of these, has no shadow yet, or the id is none of its keys.
    package func machine(_ db: Database, of name: Name) throws -> RecordMachine? {
        guard let shape = shapes.first(where: { $0.name == name.table }), try isReadable(db, shape) else { return nil }
        return try RecordReading(db, shape, name, self, isCaptured: Installation.isCaptured(db, shape))?.machine()
    }

    /// Where all records stand, in every scope that has anything to do with them.
    ///
    /// - Parameter rowLimit: rows of a table, at most; one with more of them is not read.
    package func all(_ db: Database, rowLimit: Int) throws -> Reading {
        var reading = Reading()
        for shape in shapes where try isReadable(db, shape) && !exceeds(db, shape, rowLimit) {
            reading.tables.insert(shape.name)
            let isCaptured = try Installation.isCaptured(db, shape)
            if !isCaptured { reading.uncaptured.insert(shape.name) }
            for name in try names(db, shape) {
                reading.machines[name] = try RecordReading(db, shape, name, self, isCaptured: isCaptured)?.machine()
            }
        }
        guard !reading.tables.isEmpty else { return reading }
        for (id, place, scope) in try Outbox.openRecords(db) {
            reading.operations[id] = Name(table: place.entity, record: place.record, scope: scope)
        }
        return reading
    }

    /// The verdicts that operations may have had, by what is left of them in the outbox: `nil` where it is still open.
    package func verdicts(_ db: Database, on operation: Int64) throws -> Set<RecordMachine.Verdict>? {
        // A taken operation may be in a block by now, and packing drops a deferred one.
        guard let state = try Outbox.state(db, operation) else {
            return [.taken, .deferredWrite, .deferredDelete, .outcomeUnknown]
        }
        return switch state {
        case .sealed, .resealed, .replayed, .losing, .lost: nil
        // An operation whose outcome is unknown keeps the version that it once had.
        case .applied, .merged: [.taken, .outcomeUnknown]
        case .conflict: [.conflict]
        case .rejected: [.rejected]
        case .outcomeUnknown: [.outcomeUnknown]
        case .deferred: [.deferredWrite, .deferredDelete]
        }
    }

    /// Temporary ids that the server's have taken the place of.
    package func renamed(_ db: Database) throws -> [String: String] { try Alias.renamed(db) }

    /// Whether the shadow has the table's columns.
    private func isReadable(_ db: Database, _ shape: TableSchema) throws -> Bool {
        guard try LibrarySchema.isInstalled(db), try ShadowTable(shape).exists(db) else { return false }
        let columns = try ShadowTable(shape).columns(db)
        return (shape.key + shape.data).allSatisfy { column in columns.contains { $0.isSameName(as: column.name) } }
    }

    private func exceeds(_ db: Database, _ shape: TableSchema, _ limit: Int) throws -> Bool {
        try Query(db, "SELECT 1 FROM \(shape.sql) LIMIT 1 OFFSET ?1").first(db, [.integer(Int64(limit))]) { _ in true }
            ?? false
    }

    private func names(_ db: Database, _ shape: TableSchema) throws -> Set<Name> {
        var names: Set<Name> = []
        for place in try noted(db, shape.name) where !place.scope.isEmpty {
            names.insert(Name(table: shape.name, record: place.record, scope: place.scope))
        }
        for scope in try Manifest.scopes(db, shape.name) {
            for id in try Manifest(db: db, scope: scope, entity: shape.name).ids() {
                names.insert(Name(table: shape.name, record: id.text, scope: scope.name))
            }
        }
        for key in try ShadowTable(shape).keysWithRows(db) {
            guard let id = shape.recordID(key) else { continue }
            let scope = try RecordTable(shape).scopeName(db, key)
            if !scope.isEmpty { names.insert(Name(table: shape.name, record: id.text, scope: scope)) }
        }
        return names
    }

    /// The records of a table that the library's tables tell of, some several times, each with a scope.
    private func noted(_ db: Database, _ entity: String) throws -> [(record: String, scope: String)] {
        var places = try QuarantinedRow.places(db, entity)
        places += try Outbox.places(db, entity)
        places += try OrphanedEdits.places(db, entity)
        places += try KnownVersions.places(db, entity)
        places += try RefetchQueue.places(db, entity)
        places += try Inferred.places(db, entity)
        places += try Conflicts.places(db, entity)
        return places
    }
}

/// The rows of a record in the bookkeeping tables, put together.
private struct RecordReading {
    let db: Database
    let shape: TableSchema
    let name: RecordMachines.Name
    let machines: RecordMachines
    let isCaptured: Bool
    let id: RecordID
    let key: [Cell]
    /// Whether the row in the table and its shadow are this scope's.
    let isOwner: Bool

    init?(
        _ db: Database, _ shape: TableSchema, _ name: RecordMachines.Name, _ machines: RecordMachines, isCaptured: Bool
    ) throws {
        guard let id = RecordID(name.record), let key = shape.key(of: id) else { return nil }
        (self.db, self.shape, self.name, self.machines, self.isCaptured) = (db, shape, name, machines, isCaptured)
        (self.id, self.key) = (id, key)
        isOwner = try RecordTable(shape).scopeName(db, key) == name.scope
    }

    func machine() throws -> RecordMachine {
        guard Scope(name.scope).map(shape.rule.mayHaveRows(in:)) == true else { return try stranger() }
        let table = RecordTable(shape)
        let quarantined = try QuarantinedRow.entry(db, shape, id, name.scope)
        // The marks of a record that leaves are another scope's, and count here once it has moved in again.
        let isOwner = isOwner && (quarantined?.move ?? .no) == .no
        let row = isOwner ? try table.rowAsItIs(db, key) : nil
        let found = isOwner ? try table.shadow(db, key) : nil
        let unseen = try unseen(row, found)
        let shadow = isOwner ? try FirstCapture.shadow(db, shape, key, row: row, found) : nil
        var machine = RecordMachine()
        machine.inFlight = try inFlight()
        machine.place = place(row, quarantined)
        machine.access = try access()
        let isDisplaced = !isOwner && quarantined?.move == .no && machine.access == .unfollowed
        machine.base = isDisplaced ? .absent : try base(shadow, row, quarantined, unseen)
        machine.block = isDisplaced ? .displaced : isOwner ? try block(shadow) : .none
        machine.local = isDisplaced ? .edited : try local(shadow, row, quarantined, unseen, machine)
        machine.queue = shadow?.mark.map { $0 > 0 ? .queued : .deferred } ?? .idle
        machine.decision = try decision()
        if machines.isTemporary(name) { machine.identity = .temporary }
        machine.knowledge = try knowledge()
        if try isOrphaned() { machine.orphan = .orphaned }
        machine.capture = !isCaptured ? .lost : unseen == nil ? .watched : .unseen
        return machine
    }

    private func unseen(_ row: [Cell]?, _ shadow: Shadow?) throws -> Inferred.Entry? {
        let found = try Scope(name.scope).flatMap { try Inferred.entry(db, $0, name.table, name.record) }
        return try found ?? FirstCapture.entry(db, shape, id, key, in: name.scope, row: row, shadow)
    }

    /// The scope has no rows of the table by its rule, so that operations in flight there say nothing of a row.
    private func stranger() throws -> RecordMachine {
        var machine = RecordMachine()
        machine.access = .unfollowed
        machine.decision = try decision()
        if try isOrphaned() { machine.orphan = .orphaned }
        return machine
    }

    private func base(
        _ shadow: Shadow?, _ row: [Cell]?, _ quarantined: QuarantinedRow.Entry?, _ unseen: Inferred.Entry?
    ) throws -> RecordMachine.Base {
        // Before the comparison a shadow holds the row as the unseen write had left it.
        if let unseen { return unseen.kind.isNew ? .absent : .present }
        if let shadow {
            switch shadow.state {
            case .absent:
                // Made here anew beside a row that waits for its place: that one is the server's, if the scope has one.
                let isBeside = quarantined?.move == .no && (shadow.isGone || row != nil)
                let isServers = try isBeside && ScopeRecord.isKnown(db, name.scope)
                return shadow.seed != nil ? .seeded : isServers || shadow.isRowUnknown ? .present : .absent
            case .known: return .present
            case .deleted: return .deleted
            }
        }
        if quarantined != nil || isCaptured && row != nil { return .present }
        // A row that is fetched anew may have been taken away for it.
        guard try isCaptured == false || !isRefetched(), let scope = Scope(name.scope) else { return .absent }
        return try Manifest(db: db, scope: scope, entity: shape.name).hash(of: id) == nil ? .absent : .present
    }

    private func local(
        _ shadow: Shadow?, _ row: [Cell]?, _ quarantined: QuarantinedRow.Entry?, _ unseen: Inferred.Entry?,
        _ machine: RecordMachine
    ) throws -> RecordMachine.Local {
        if let unseen {
            if row != nil { return .edited }
            let isDeleted = machine.inFlight == .delete || machine.inFlight == .replayedDelete
            return unseen.kind.isNew || isDeleted ? .clean : .deleted
        }
        guard let shadow else { return try isUnnoted(row, quarantined) ? .edited : .clean }
        // A row that differs and has no mark was written unseen.
        if !isCaptured, shadow.mark == nil, machine.block == .none { return .clean }
        let operation = try Outbox.overlay(db, entity: name.table, record: name.record, scope: name.scope)
        let kept = quarantined.flatMap { $0.move == .no && !shadow.isGone ? $0.cells : nil }
        guard let current = row ?? kept else {
            return shadow.rebased(with: operation, .none, shape: shape, current: nil) == nil ? .clean : .deleted
        }
        let reserved = Set(machines.declarations.entity(shape.name).serverFields.compactMap(shape.dataIndex))
        let edits = LocalDelta(shape: shape, shadow: shadow, operation: operation, current: current, reserved: reserved)
        // Of a record that was deleted elsewhere no row is left by itself.
        let isRevived = operation == nil && shadow.state == .deleted
        return edits.isEmpty && !isRevived ? .clean : .edited
    }

    /// Whether the row in the table is not the one that the manifest knows, and no shadow says that it was edited.
    private func isUnnoted(_ row: [Cell]?, _ quarantined: QuarantinedRow.Entry?) throws -> Bool {
        guard isCaptured, quarantined == nil, let row, let scope = Scope(name.scope), try !isRefetched() else {
            return false
        }
        guard let known = try Manifest(db: db, scope: scope, entity: shape.name).hash(of: id) else {
            // Before the first filling the rows of a table that only comes down pass for the server's.
            return try ScopeRecord.read(db, scope).complete != nil
        }
        return known != RowHash(shape).hash(PackedID.encode(id), row)
    }

    private func inFlight() throws -> RecordMachine.InFlight {
        let open = try Outbox.inFlight(db, entity: name.table, record: name.record, scope: name.scope)
        guard let last = open.last else { return .none }
        let isReplay = open.contains { $0.isReplay }
        return last.isDelete ? isReplay ? .replayedDelete : .delete : isReplay ? .replayedWrite : .write
    }

    private func place(_ row: [Cell]?, _ quarantined: QuarantinedRow.Entry?) -> RecordMachine.Place {
        switch (quarantined?.move, row != nil) {
        case (nil, true): .table
        case (nil, false): .nowhere
        case (.no, true): .doubled
        case (.no, false): .quarantined
        case (.waiting, _): .leaving
        case (.moved, _): .left
        case (.deleted, _): .abandoned
        case (.sealed, _): .leavingSealed
        }
    }

    private func block(_ shadow: Shadow?) throws -> RecordMachine.Block {
        let place = RecordName(entity: name.table, record: name.record)
        switch try BlockedEdits.blocker(db, of: place)?.reason {
        case .refused: return .rejectedParent
        case .awaitingID: return .awaitingID
        case nil: break
        }
        if try Outbox.hasUnsendable(db, place) { return .unsendable }
        let isUnconfirmed = try shadow != nil && Inferred.isUnconfirmed(db, name.scope, name.table, name.record)
        return isUnconfirmed ? .unconfirmed : .none
    }

    private func decision() throws -> RecordMachine.Decision {
        let place = RecordName(entity: name.table, record: name.record)
        let isRejected = try Outbox.hasRefused(db, place, in: name.scope)
        let isOpen = try Conflicts.isOpen(db, name.table, name.record, name.scope)
        return isOpen ? isRejected ? .rejectedAndConflict : .conflict : isRejected ? .rejected : .none
    }

    private func knowledge() throws -> RecordMachine.Knowledge {
        if try isRefetched() { return .refetch }
        let version = try Scope(name.scope).flatMap { try KnownVersions.version(db, $0, name.table, name.record) }
        return version == nil ? .covered : .ahead
    }

    private func access() throws -> RecordMachine.Access {
        guard let scope = Scope(name.scope) else { return .unfollowed }
        let record = try ScopeRecord.read(db, scope)
        // It is noted as lost until its first delta is whole; a snapshot or pages may have filled it before.
        let isFilled = record.bootstrap != nil || record.checkpoint != nil || record.complete != nil
        if try isFilled || ScopeRecord.isFollowed(db, scope) { return .followed }
        return try ScopeRecord.isKnown(db, name.scope) ? .lost : .unfollowed
    }

    private func isOrphaned() throws -> Bool {
        try OrphanedEdits.contains(db, name.table, name.record, in: name.scope)
    }

    private func isRefetched() throws -> Bool {
        try RefetchQueue.contains(db, name.table, name.record, in: name.scope)
    }
}
