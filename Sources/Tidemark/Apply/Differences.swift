import GRDB
import TidemarkCore
import TidemarkWire

extension Applier {
    /// The row that a change brings. What a difference leaves out is as in the server's row that is here.
    ///
    /// - Throws: ``DifferenceMismatch`` where there is no such row, or a text is not what the server has.
    func cells(
        _ change: IncomingChange, _ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ reader: JSONReader
    ) throws -> [Int: Cell] {
        var cells = try table.cells(change, reader)
        guard change.isDifference else { return cells }
        let known = try table.records.serverRow(db, id, in: scope)
        if change.isPartial {
            guard let known, !toldShortly.contains(RecordName(entity: table.shape.name, record: id.text)) else {
                throw DifferenceMismatch()
            }
            cells.merge(zip(known.indices, known)) { written, _ in written }
        }
        guard let range = change.patches else { return cells }
        var patches = JSONReader(reader.bytes, at: range.lowerBound)
        for patch in try patches.readPatches() {
            // A column of a newer schema.
            guard let index = table.shape.dataIndex(patch.field) else { continue }
            guard case .text(let old)? = known?[index], let new = TextPatch.apply(patch, to: old) else {
                throw DifferenceMismatch()
            }
            cells[index] = .text(new)
        }
        return cells
    }
}

extension Verdict {
    /// Whether the server could not make out the text that a patch was made from.
    var asksForWhole: Bool { status == .rejected && refusal?.code == RejectionCode.patchBaseUnknown }

    /// The verdict as a deferral: the edit is sealed again, whole.
    func deferred() -> Verdict {
        var verdict = self
        verdict.status = .deferred
        return verdict
    }
}
