import Foundation
import GRDB
import TidemarkServer
import TidemarkWire

// What became of each edit: it is on its way and to be seen here (I5), or in the log, or in a list that the app can
// read (I1, I7).
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// Finds out what an act wrote.
    func noteWrites(
        from former: OracleDevice.Sight, to sight: inout OracleDevice.Sight, _ device: Int, _ db: Database
    ) throws {
        let heads = scopes.mapValues(\.current.head)
        allowDoubled(from: former, to: sight)
        verdicts.times[world.serial] = world.time
        for key in Set(former.rows.keys).union(sight.rows.keys).sorted() {
            guard let table = tables[key.entity], former.rows[key] != sight.rows[key] else { continue }
            if noteUncaptured(key, table, from: former, to: &sight, device) { continue }
            deletes.note(key, wasThere: former.rows[key] != nil, isThere: sight.rows[key] != nil)
            world.note("act \(world.serial) on \(device): \(key) is \(text(sight.rows[key]))")
            let isQuarantined = former.quarantined.contains(key) || sight.quarantined.contains(key)
            if isQuarantined { devices[device].unfounded.insert(key) }
            if sight.rows[key] == nil {
                allowed[.delete(key), default: 0] += 1
                devices[device].written.insert(.delete(key))
            }
            if isQuarantined, sight.rows[key] == nil {
                // What is deleted is what was made here; the quarantined row is another, and stands again.
                devices[device].writes[key] = nil
                for cell in entered.keys where cell.key == key { allowed[cell, default: 0] += 1 }
                continue
            }
            guard let cells = sight.rows[key] else {
                let row = former.rows[key] ?? []
                // Somebody else's delete of a row that stood here may be in the log already: then this one is done. It
                // says nothing of a row that was made here and that the server was not known to have.
                let isBaseless = former.base(key) == nil
                let write = OracleDevice.Write(
                    serial: world.serial, value: nil, row: row, isBaseless: isBaseless,
                    after: isBaseless ? heads : completes(of: former))
                devices[device].writes[key] = ["": write]
                continue
            }
            devices[device].writes[key]?[""] = nil
            try noteCells(of: key, cells, table, from: former, in: sight, device, db)
        }
    }

    /// Finds out which cells of a row an act wrote.
    private func noteCells(
        of key: OracleKey, _ cells: [Value], _ table: OracleTable, from former: OracleDevice.Sight,
        in sight: OracleDevice.Sight, _ device: Int, _ db: Database
    ) throws {
        // In another scope the row is a new one, with all that is in it.
        let isMoved = former.rows[key].map { table.scopes(of: $0) != table.scopes(of: cells) } ?? false
        if isMoved { allowed[.delete(key), default: 0] += 1 }
        for (index, column) in table.data.enumerated() where !table.authoritative.contains(column) {
            let (old, new) = (former.rows[key]?[index], cells[index])
            if new == .absent { devices[device].writes[key]?[column] = nil }
            let isWritten = new != old && new != .absent && (old != .absent || new != .null)
            guard isWritten || isMoved else { continue }
            let cell = OracleCell(key: key, column: column, value: cells[index])
            allowed[cell, default: 0] += 1
            devices[device].written.insert(cell)
            // An edit from before the move may be refused yet: then the row goes with what it had.
            if isMoved, let under = former.base(key)?[index], under != cells[index] {
                allowed[OracleCell(key: key, column: column, value: under), default: 0] += 1
            }
            guard isWritten else { continue }
            // The log may have an edit whose answer this device has not heard. It may also have the same value from
            // somebody else, and then the server writes no second version.
            let isSent = try names.all(of: key).contains { record in
                try OracleListing.isSent(db, key.entity, record, column, cells[index])
            }
            devices[device].writes[key, default: [:]][column] = OracleDevice.Write(
                serial: world.serial, value: cells[index], row: cells,
                after: isSent ? [:] : after(key, index, cells[index]),
                isYielding: sight.unfilled[key.entity]?.contains(index) ?? false)
        }
    }

    /// Of a record that stands twice either row may be deleted; a shadow may be left of it.
    private func allowDoubled(from former: OracleDevice.Sight, to sight: OracleDevice.Sight) {
        for (key, cells) in sight.doubled {
            guard let table = tables[key.entity] else { continue }
            for (column, value) in zip(table.data, cells) {
                allowed[OracleCell(key: key, column: column, value: value), default: 0] += 1
            }
        }
        for (key, cells) in former.doubled where !cells.isEmpty && sight.doubled[key]?.isEmpty ?? true {
            allowed[.delete(key), default: 0] += 1
        }
    }

    /// Above which versions a write is looked for: not above the row that holds just that already.
    private func after(_ key: OracleKey, _ index: Int, _ value: Value) -> [Scope: Version] {
        scopes.mapValues { histories in
            let current = histories.current
            guard let last = current.versions[key]?.last, current[last].cells?[index] == value else {
                return current.head
            }
            return last - 1
        }
    }

    func checkWrites(_ device: Int, _ db: Database, since former: OracleDevice.Sight) throws {
        for (key, writes) in devices[device].writes {
            guard let table = tables[key.entity] else { continue }
            guard !devices[device].scattered.contains(key), !isUnnamed(table) else {
                devices[device].writes[key] = nil
                continue
            }
            if devices[device].sight.missing.contains(key.entity) { continue }
            // Until the two are one, neither says what was meant.
            if devices[device].sight.doubled[key] != nil { continue }
            for (column, write) in writes {
                let index = table.data.firstIndex(of: column)
                var write = write
                write.logged = logged(write, key, index, table, device)
                let isDone =
                    try isUndoneBySchema(write, key, index, table, device, former)
                    || isDone(write, key, index, table, device, db)
                devices[device].writes[key]?[column] = isDone ? nil : write
            }
            if devices[device].writes[key]?.isEmpty == true { devices[device].writes[key] = nil }
        }
    }

    /// Where the log has an edit. A row that went to another scope is held against that one's log.
    private func logged(
        _ write: OracleDevice.Write, _ key: OracleKey, _ index: Int?, _ table: OracleTable, _ device: Int
    ) -> (scope: Scope, version: Version)? {
        let places = table.scopes(of: devices[device].sight.base(key))
        guard write.logged.map({ !places.contains($0.scope) }) ?? true else { return write.logged }
        // First in the scope that it was made in: who moved the record on took the edit along to another.
        let own = Set(table.scopes(of: write.row))
        for scope in places.filter(own.contains) + places.filter({ !own.contains($0) }) {
            let version = scopes[scope]?.current.row(key, above: write.after[scope, default: 0]) { cells in
                index.map { index in (cells?[index] ?? nil) == write.value } ?? (cells == nil)
            }
            if let version { return (scope, version) }
        }
        return write.logged
    }

    /// Before a history is lost: what it has of edits whose devices were not looked at since.
    func noteLogged() {
        for device in devices.indices {
            for (key, writes) in devices[device].writes {
                guard let table = tables[key.entity] else { continue }
                for (column, write) in writes {
                    let logged = logged(write, key, table.data.firstIndex(of: column), table, device)
                    devices[device].writes[key]?[column]?.logged = logged
                }
            }
        }
    }

    /// Whether the app's own schema has undone an edit: the row's parent is gone.
    private func isUndoneBySchema(
        _ write: OracleDevice.Write, _ key: OracleKey, _ index: Int?, _ table: OracleTable, _ device: Int,
        _ former: OracleDevice.Sight
    ) -> Bool {
        let sight = devices[device].sight
        let rows = [write.row, former.rows[key] ?? write.row]
        return table.parents.contains { parent in
            let isUndone =
                parent.isCascade
                ? sight.rows[key] == nil : parent.index == index && sight.rows[key]?[parent.index] == .null
            return isUndone && rows.compactMap(parent.key).contains { sight.rows[$0] == nil }
        }
    }

    /// Whether nothing more is to be expected of an edit.
    private func isDone(
        _ write: OracleDevice.Write, _ key: OracleKey, _ index: Int?, _ table: OracleTable, _ device: Int,
        _ db: Database
    ) throws -> Bool {
        let column = index.map { table.data[$0] } ?? ""
        let sight = devices[device].sight
        if sight.quarantined.contains(key) || sight.inferred.contains(key) || sight.held.contains(key) { return false }
        let isVisible = index.map { sight.rows[key]?[$0] == write.value } ?? (sight.rows[key] == nil)
        let isClean = sight.shadows[key] == nil && sight.uncaptured[key] == nil
        if let logged = write.logged, let histories = scopes[logged.scope], let standing = sight.scopes[logged.scope],
            isClean || !isVisible,
            let bound = bound(device, key, sight.base(key), logged.scope, histories, standing, floor: logged.version)
        {
            // From here on the device has a row that holds the edit, or one that came after it.
            devices[device].bounds[logged.scope, default: [:]][key] = bound
            return true
        }
        let base = sight.base(key)
        let isAsBefore = index.map { base?[$0] == write.value } ?? (base == nil)
        if isVisible, write.logged != nil || !isAsBefore { return false }
        // A device that has not heard of the record's id lists it under its own.
        let listing = try names.all(of: key).reduce(OracleListing()) { listing, name in
            try listing.joined(
                with: OracleListing(db, table, OracleKey(entity: key.entity, record: name), column, write))
        }
        // Made as the server's row is: nothing is sent, and the row is held against the log like any other.
        if isVisible { return !listing.isOpen }
        if listing.isListed { return true }
        if listing.isKept { return false }
        if write.isYielding { return true }
        if write.isCopied, !listing.isOpen { return true }
        // Made and deleted here, and taken by nobody: what somebody else made of that name was not meant.
        if write.isBaseless, !listing.isOpen, !wasTaken(write.row, key) { return true }
        // Edited back to what the server had before somebody deleted it: nothing is left to tell.
        if let index, base == nil, isLast(write.value, key, index) { return true }
        let edit = index == nil ? "the delete of \(key)" : "\(key).\(column) = \(write.value?.bare ?? "")"
        let found = text(sight.rows[key])
        if let logged = write.logged {
            throw Violation(
                "I5",
                "device \(device): \(edit) of act \(write.serial) is in the log at \(logged.version), here is \(found)")
        }
        throw Violation(
            listing.isOpen || !isClean ? "I5" : "I1",
            "device \(device): \(edit) of act \(write.serial) is neither sent nor listed, here is \(found)")
    }

    private func wasTaken(_ row: [Value], _ key: OracleKey) -> Bool {
        scopes.values.contains { $0.current.row(key, above: 0) { $0.fits(row) } != nil }
    }

    /// Whether a record had a value when it was last deleted; it may have been made anew since.
    private func isLast(_ value: Value?, _ key: OracleKey, _ index: Int) -> Bool {
        scopes.values.contains { histories in
            let rows = (histories.current.versions[key] ?? []).map { histories.current[$0].cells }
            guard let end = rows.lastIndex(where: { $0 == nil }) else { return false }
            return rows[..<end].compactMap(\.self).last.map { $0[index] == value } ?? false
        }
    }

    // MARK: Refusals

    /// Beside what its own rules say, a server refuses only edits of what others deleted, and what is in one group with
    /// an edit that was not taken.
    func checkRefusals(_ device: Int, _ db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, entity, record, code, members, in_group FROM tidemark_operation
                WHERE state = 'rejected' AND id > ? ORDER BY id
                """)
        let cursor = try Row.fetchCursor(statement, arguments: [devices[device].lastRefusal])
        while let row = try cursor.next() {
            devices[device].lastRefusal = row[0]
            let key = names[OracleKey(entity: row[1], record: row[2])]
            let wasRefused = !verdicts.refused.insert(key).inserted
            let (code, members): (String, Data) = (row[3], row[4])
            // No record id can be made of its key.
            if tables[key.entity]?.isOddlyKeyed ?? false, code == RejectionCode.unsendableValue { continue }
            if ruled.contains(key.entity), RejectionCode.isOperators(code) { continue }
            if code == RejectionCode.groupFailed, try hasBlocker(row[5], db) { continue }
            if code == RejectionCode.recordTooLarge, try isLargeGroup(row[5], db) {
                verdicts.tooLarge.insert(key)
                continue
            }
            guard !isExplained(code, key, members) else { continue }
            // The record was refused, of which another copy of this file was told, or nobody; the server never had it.
            if code == RejectionCode.recordDeleted, wasRefused, !wasLogged(key) { continue }
            throw Violation(
                "I10",
                "device \(device): \(key) is refused (\(row[3] as String)): \(String(decoding: members, as: UTF8.self))"
            )
        }
    }

    /// Whether an operation of the group has a reason of its own, which is looked at like any other.
    private func hasBlocker(_ group: String?, _ db: Database) throws -> Bool {
        let statement = try db.cachedStatement(
            sql: """
                SELECT EXISTS (SELECT 1 FROM tidemark_operation WHERE in_group = ?1
                    AND (state = 'conflict' OR state = 'rejected' AND code <> ?2))
                """)
        return try Bool.fetchOne(statement, arguments: [group, RejectionCode.groupFailed]) ?? false
    }

    /// Whether a group is more than some node takes in one request.
    private func isLargeGroup(_ group: String?, _ db: Database) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT count(*) FROM tidemark_operation WHERE in_group = ?")
        return try Int.fetchOne(statement, arguments: [group]) ?? 0 > SimulatedServer.fewestOperations
    }

    func wasLogged(_ key: OracleKey) -> Bool {
        scopes.values.contains { scope in scope.histories.contains { $0.versions[key] != nil } }
    }

    private func isExplained(_ code: String, _ key: OracleKey, _ members: Data) -> Bool {
        guard code == "record_deleted" else { return false }
        let operation =
            try? JSONSerialization.jsonObject(with: Data("{".utf8) + members + Data("}".utf8)) as? [String: Any]
        guard let base = operation?["baseVersion"] as? Int else {
            // An insert whose answer was lost together with the access comes again with it, under its temporary id;
            // its record may have been deleted meanwhile.
            let wasDeleted = scopes.values.contains { $0.current.row(key, above: 0, where: { $0 == nil }) != nil }
            return hasSharedNames || operation?["tempId"] != nil && wasDeleted
        }
        return scopes.values.contains { scope in
            // What another history had may have been deleted in it.
            scope.newest > 0 || scope.current.row(key, above: Version(base), where: { $0 == nil }) != nil
        }
    }
}
