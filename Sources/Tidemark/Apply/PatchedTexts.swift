import GRDB
import TidemarkCore
import TidemarkWire

/// A patch on a page does not fit the text that is here: the page is not taken.
struct PatchMismatch: Error {}

extension Applier {
    /// The row that a change brings, its patched texts made whole from the row that is here.
    ///
    /// - Throws: ``PatchMismatch`` where a result is not what the server has.
    func cells(
        _ change: IncomingChange, _ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ reader: JSONReader
    ) throws -> [Int: Cell] {
        var cells = try table.cells(change, reader)
        guard let range = change.patches else { return cells }
        var patches = JSONReader(reader.bytes, at: range.lowerBound)
        let held =
            try table.records.shadow(db, key)?.cells ?? table.records.row(db, key)
            ?? Parked.cells(db, table.shape, id, scope.name)
        for patch in try patches.readPatches() {
            // A column of a newer schema.
            guard let index = table.shape.dataIndex(patch.field) else { continue }
            guard case .text(let old)? = held?[index], let new = TextPatch.apply(patch, to: old) else {
                throw PatchMismatch()
            }
            cells[index] = .text(new)
        }
        return cells
    }
}

extension Verdict {
    /// Whether the server could not make out the text that a patch was made from.
    var asksForWhole: Bool { status == .rejected && refusal?.code == RejectionCode.patchBaseUnknown }

    /// The same verdict as one that puts the edit off: it is sealed again, whole.
    func deferred() -> Verdict {
        var verdict = self
        verdict.status = .deferred
        return verdict
    }
}
