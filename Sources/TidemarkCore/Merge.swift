package import TidemarkWire

/// How one operation meets the record as the server has it: a pure rule, run in the transaction that commits it.
package enum Merge {
    /// The newest row of a record in the log.
    package struct Current: Hashable, Sendable {
        package var version: Version
        /// `nil`: a tombstone.
        package var data: DataObject?
        package var fieldVersions: FieldVersions
        /// When it was committed, in milliseconds since 1970.
        package var time: Int64
        /// A tombstone: what was deleted, where that is kept.
        package var last: LastState?
        /// The record's memory of writes that devices replayed out of a lost history.
        package var originals = Originals()

        package init(
            version: Version, data: DataObject?, fieldVersions: FieldVersions, time: Int64 = 0, last: LastState? = nil
        ) {
            self.time = time
            self.version = version
            self.data = data
            self.fieldVersions = fieldVersions
            self.last = last
        }
    }

    package enum Outcome: Hashable, Sendable {
        /// A new row: the data (`nil`: a tombstone), the fields that it writes, and what to tell the device.
        case write(DataObject?, written: Writes, Answer)
        /// Everything asked for is so already, or something else stands; no row, no version.
        case nothing(Answer)
        /// Not acceptable, now or later.
        case refuse(Verdict.Refusal, Verdict.Record?)
        /// Somebody has to decide: nothing is written, and this is the record.
        case conflict(Verdict.Record)
    }

    /// Which fields the new row sets at its own version.
    package enum Writes: Hashable, Sendable {
        case all
        case only([ArraySlice<UInt8>])
    }

    package struct Answer: Hashable, Sendable {
        package var status: Verdict.Status = .applied
        /// Whether the resulting row has to travel back, because the reader could not work it out.
        package var needsRecord = false
        package var overwrites: [Verdict.Overwrite] = []
        package var losses: [Verdict.Loss] = []
        /// The tombstone of the record that the edit revived.
        package var revived: Version?
        /// A delete: the version that it was made on, where others had written since.
        package var unseenSince: Version?
    }

    /// - Parameters:
    ///   - seen: versions written by the chain of own operations that `baseNumber` names.
    ///   - stamp: when the edit was made, between the bounds in which that is believed.
    ///   - decided: fields that a rule of the operator's has set; they stand, whatever was sent.
    ///   - mayWriteServerFields: whether the caller is one of the server's own programs (E4).
    package static func decide(
        _ operation: Operation, on current: Current?, declaration: EntityDeclaration, seen: Set<Version> = [],
        stamp: EditStamp = .zero, decided: DataObject = .empty, mayWriteServerFields: Bool
    ) -> Outcome {
        if operation.isSeed, operation.isInsert, let current { return giveWay(operation, to: current) }
        let meeting = Meeting(
            operation, current: current, declaration: declaration, seen: seen, stamp: stamp, decided: decided,
            mayWriteServerFields: mayWriteServerFields)
        if operation.kind == .delete { return meeting.delete() }
        guard let current else { return meeting.onAbsent() }
        return current.data == nil ? meeting.onTombstone(current) : meeting.onLive(current)
    }
}

/// One edit, the record that it meets, and what is declared of both.
struct Meeting {
    let operation: Operation
    /// The fields to write: those that were sent, without the server-authoritative ones, and those that a rule has set.
    let fields: DataObject
    /// The fields that were sent and are left out, or get another value than was sent.
    let losses: [Verdict.Loss]
    /// Whether `fields` differs from what the device has sent.
    let isAltered: Bool
    let current: Merge.Current?
    let declaration: EntityDeclaration
    let seen: Set<Version>
    let stamp: EditStamp
    let decided: DataObject

    init(
        _ operation: Operation, current: Merge.Current?, declaration: EntityDeclaration, seen: Set<Version>,
        stamp: EditStamp, decided: DataObject, mayWriteServerFields: Bool
    ) {
        self.operation = operation
        self.current = current
        self.declaration = declaration
        self.seen = seen
        self.stamp = stamp
        self.decided = decided
        let sent = operation.fields
        let reserved = mayWriteServerFields ? [] : declaration.serverFields.map(DataObject.canonical)
        guard !reserved.isEmpty || !decided.fields.isEmpty else {
            (fields, losses, isAltered) = (sent, [], false)
            return
        }
        let isReserved = { (name: ArraySlice<UInt8>) in reserved.contains { Identifier.isSameName($0, name) } }
        let kept = sent.filter { !isReserved(sent.name($0)) }
        fields = decided.fields.isEmpty ? kept : kept.overlaid(with: decided)
        isAltered = fields != sent
        let set = decided.lookup
        losses = sent.fields.compactMap { field in
            let name = sent.name(field)
            if let value = set[name] {
                return value == sent.value(field) ? nil : Verdict.Loss(field: sent.nameString(field), rule: .serverRule)
            }
            let standing = current?.data?.value(named: name)
            guard isReserved(name), standing != sent.value(field) else { return nil }
            // A row that is made names all its columns, and says nothing of those that it leaves empty.
            if standing == nil, sent.decoded(field) == .null { return nil }
            return Verdict.Loss(field: sent.nameString(field), rule: .serverFields)
        }
    }

    /// Whether the editor knew the field as it stands, by the row that the edit was made on or by an own operation.
    func isSeen(_ name: ArraySlice<UInt8>, in versions: FieldVersions, base: Version?) -> Bool {
        let version = versions[name]
        return base.map { version <= $0 } ?? false || seen.contains(version)
    }
}
