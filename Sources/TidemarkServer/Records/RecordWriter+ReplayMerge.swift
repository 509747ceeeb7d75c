import TidemarkCore
import TidemarkWire

/// How an edit is written that a device replays after a loss.
struct Restored {
    let mark: Originals.Mark
    /// Whether it begins a record whose insert has not come back yet.
    let begins: Bool

    /// Answers an operation whose values are in place already. They are written down as replayed where an older value
    /// may still come back.
    func note(
        _ answer: Merge.Answer, _ operation: Operation, _ record: RecordID, _ current: Merge.Current?,
        _ records: RecordWriter, at moment: Int64
    ) throws -> Verdict {
        var answer = answer
        answer.needsRecord = true
        var version = current?.version ?? records.writer.state.head
        if let current, let data = current.data, operation.kind == .upsert, mark != .native,
            records.originals(current, data, .only([]), operation, self) != current.originals
        {
            version = try records.append(
                data, .only([]), operation, record, current: current, unseenSince: nil, stamp: .zero, restored: self,
                at: moment)
        }
        return records.verdict(answer, version: version, data: current?.data, met: current)
    }
}

extension RecordWriter {
    enum Restoring {
        /// It meets the record like any other edit.
        case goesOn(Operation, Restored)
        /// Something else stands.
        case stands(Verdict)
        /// This is the row that it makes.
        case write(DataObject?, Restored)
    }

    func restore(
        _ operation: Operation, _ original: Operation.Original, _ current: Merge.Current?
    ) -> Restoring {
        let replayMerge = ReplayMerge(original, of: operation, in: writer.state.history)
        switch replayMerge.course(of: operation, on: current, declaration: declaration) {
        case .goesOn(let edit): return .goesOn(edit, Restored(mark: replayMerge.mark, begins: false))
        case .begins(let edit): return .goesOn(edit, Restored(mark: replayMerge.mark, begins: true))
        case .stands:
            return .stands(Verdict(.merged, standing: current?.data, at: current?.version ?? writer.state.head))
        case .write(let data): return .write(data, Restored(mark: replayMerge.mark, begins: false))
        }
    }

    /// Writes what comes back as it is, whatever the policy says.
    func write(
        _ data: DataObject?, _ restored: Restored, _ operation: Operation, _ record: RecordID,
        _ current: Merge.Current?, at moment: Int64
    ) throws -> Verdict {
        let version = try append(
            data, data == nil ? .all : .only([]), operation, record, current: current, unseenSince: nil,
            stamp: .zero, restored: restored, at: moment)
        return Verdict(data == nil ? .applied : .merged, standing: data, at: version)
    }

    /// The record's memory of replayed writes, after a write.
    func originals(
        _ current: Merge.Current?, _ data: DataObject?, _ writes: Merge.Writes, _ operation: Operation,
        _ restored: Restored?
    ) -> Originals {
        var originals = current?.originals ?? Originals()
        // Nobody knows who wrote a row that is older than its capture, so that all lost writes come over it.
        let mark = operation.isSeed ? .nobody : restored?.mark ?? .native
        if operation.kind == .delete, case .original(let version) = mark { originals.noteDeletion(version) }
        if let current, current.data == nil, data != nil, mark == .native, originals.common == .native {
            originals.noteRemade(after: current.version)
        }
        switch writes {
        case .all where restored?.begins == true:
            originals.noteAll(.nobody)
            originals.note(operation.fieldNames, mark)
        case .all: originals.noteAll(mark)
        case .only(let names): originals.note(restored == nil || operation.isSeed ? names : operation.fieldNames, mark)
        }
        return originals
    }
}

extension Verdict {
    fileprivate init(_ status: Status, standing data: DataObject?, at version: Version) {
        self.init(status, version: version, record: Record(version: version, data: data))
    }
}

extension Operation {
    fileprivate var fieldNames: [ArraySlice<UInt8>] { fields.fields.map { fields.name($0) } }
}
