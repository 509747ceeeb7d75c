import GRDB
import TidemarkCore
public import TidemarkWire

extension SyncEngine {
    /// Brings a record here now, with the records that it refers to, and keeps them in sync until the hold is released:
    /// for a screen that shows what this device does not follow (D4).
    ///
    /// ```swift
    /// let hold = try await sync.hold("document", id: "0192…", in: "workspace:7")
    /// // The document and its author are in their tables; the rest of the scope follows, and edits go both ways.
    /// await hold.release()
    /// ```
    /// The record comes by name, in one round trip, also where its scope is large or far behind. The scope is then
    /// followed like the engine's own, so that what belongs to the record comes too, and edits of it are sent. Several
    /// holds of a scope share that. In a scope that the engine follows anyway, the call only brings the record.
    ///
    /// A scope that is just being filled takes the record in once it is filled; the call waits for that.
    ///
    /// The hold lives as long as the process. What a process leaves held when it ends, the next engine on the file
    /// takes away, once it has no edit that waits. An engine that begins on the file while another one holds a scope
    /// takes its rows away too: they come back with that one's next sync. Hold in one engine.
    ///
    /// - Parameters:
    ///   - table: one of the engine's tables, in whichever case, whose rule may put rows into the scope.
    ///   - id: the id on the wire, as for ``state(of:id:)-(String,String)``.
    ///   - scope: where the record lies. Of a table in a sub-scope that one is held, and what the record refers to
    ///     elsewhere does not come along.
    ///   - columns: the foreign keys whose records come with it; `nil`: all those of one column.
    /// - Returns: when the server has answered. A record that it does not have is not in the table then.
    /// - Throws: ``SyncError``: `table_unsupported`, `configuration_invalid` where the table has no rows in such a
    ///   scope, `record_unknown` where the text is no id of the table, and what stands in the way of asking the server,
    ///   such as no network or no access. Nothing is held then.
    public func hold(
        _ table: String, id: String, in scope: Scope, following columns: [String]? = nil
    ) async throws -> RecordHold {
        try await install()
        let schema = await schemaCache.schema
        guard let schema, let shape = schema[table] else {
            throw SyncError(
                .tableUnsupported, "This engine does not sync a table '\(table)'.",
                hint: "Hold a record of one of the engine's tables.")
        }
        let scope = scope.appending(subscope: shape.rule.subscope) ?? scope
        guard shape.rule.mayHaveRows(in: scope) else {
            throw SyncError(
                .configurationInvalid, "Table '\(shape.name)' has no rows in \(scope).",
                hint: "Give the table `scope: .column(…)` with the beginning of that scope's name.", scope: scope)
        }
        guard let id = RecordID(try await canonicalID(of: id, in: shape.name)) else {
            throw SyncError(
                .recordUnknown, "'\(id)' is no id of '\(shape.name)'.", hint: "Use the id on the wire.", scope: scope)
        }
        let driver = try await addHold(scope, schema)
        do {
            try await driver.bring(
                RefetchQueue.Record(entity: shape.name, id: id),
                follow: schema.references(of: shape, in: columns, within: scope))
        } catch {
            await release(scope)
            throw error
        }
        return RecordHold(scope) { await self.release(scope) }
    }

    /// Counts one hold more, and follows the scope where nothing did.
    private func addHold(_ scope: Scope, _ schema: SyncSchema) async throws -> ScopeDriver {
        await holdMutex.lock()
        defer { holdMutex.unlock() }
        if let driver = drivers.first(where: { $0.scope == scope }) {
            if let count = holds[scope] { holds[scope] = count + 1 }
            return driver
        }
        do { try await file.write(at: .install) { db in try HeldScopes.add(db, scope) } } catch {
            throw Failure.database(error, scope: scope).error
        }
        holds[scope] = 1
        return addDriver(scope)
    }

    /// Ends a hold; the last one takes the scope along, as soon as it may go.
    func release(_ scope: Scope) async {
        guard let count = holds[scope], count > 0 else { return }
        holds[scope] = count - 1
        await evict(scope)
    }

    /// Releases the scopes that the process before this one held when it ended.
    func releaseForgotten() async throws {
        guard restriction == nil else { return }
        for scope in try await takeForgotten() { await evict(scope) }
    }

    private func takeForgotten() async throws -> [Scope] {
        await holdMutex.lock()
        defer { holdMutex.unlock() }
        let (scopes, lease, environment) = (scopes, lease, Dependencies.current)
        let now = environment.uptime
        // An engine that is about to run looks at the lease here, which spares it a transaction of its own.
        let (held, looked) = try await file.write(at: .install) { db in
            try HeldScopes.endHolds(db, scopes)
            return (try HeldScopes.all(db), try lease?.handle(db, environment, now: now))
        }
        // Meanwhile that run may have ended, and another one begun.
        if let looked, self.lease?.name == looked.name { self.lease = looked }
        let forgotten = held.filter { scope in !drivers.contains { $0.scope == scope } }
        for scope in forgotten {
            holds[scope] = 0
            addDriver(scope)
        }
        return forgotten
    }

    /// A driver that has done something: what waits to go may go now. The driver is at work as it says so, and so the
    /// eviction cannot be waited for here.
    func changed(_ scope: Scope, isStopped: Bool) async {
        if isStopped { stopped.insert(scope) } else { stopped.remove(scope) }
        if holds[scope] == 0, !evicting.contains(scope) { Task { await evict(scope) } }
        if let driver = drivers.first(where: { $0.scope == scope }) { await noteAccess(driver) }
        attachmentRunner?.signalWork()
        await publishStatus()
    }

    private func evict(_ scope: Scope) async {
        guard holds[scope] == 0, evicting.insert(scope).inserted else { return }
        defer { evicting.remove(scope) }
        guard let driver = drivers.first(where: { $0.scope == scope }) else { return }
        // The driver's mutex is taken first: a request of this scope must not hold up holds of others.
        await driver.mutex.lock()
        defer { driver.mutex.unlock() }
        await holdMutex.lock()
        defer { holdMutex.unlock() }
        guard holds[scope] == 0, await driver.evict() else { return }
        holds[scope] = nil
        removeDriver(scope)
        await publishStatus()
    }
}

extension SyncSchema {
    /// The foreign keys of a table, of one column, to records of tables in this schema, as a request names them (W62).
    fileprivate func references(of shape: TableSchema, in columns: [String]?, within scope: Scope) -> [String] {
        shapes.filter { $0.rule.mayHaveRows(in: scope) }.flatMap { parent in
            parent.children.compactMap { child -> String? in
                guard child.table.isSameName(as: shape.name), child.columns.count == 1, parent.key.count == 1,
                    child.parentColumns[0].isSameName(as: parent.key[0].name),
                    columns?.contains(where: { $0.isSameName(as: child.columns[0]) }) ?? true
                else { return nil }
                return "\(Self.escaped(child.columns[0])):\(Self.escaped(parent.name))"
            }
        }
    }

    private static func escaped(_ name: String) -> String {
        String(name.flatMap { $0 == ":" || $0 == "\\" ? ["\\", $0] : [$0] })
    }
}
