import TidemarkWire

extension SyncServer {
    /// What one write lets go of beside as much as it has replaced itself: it holds up the others for so long.
    private static let windowStep = ScopeSize(rows: 1000, bytes: 64 << 20)

    /// Ends the window of a scope that holds too much, whatever its age, so that small edits of large records fill no
    /// disk (I14): what was replaced first goes first, until half of the budget is left.
    ///
    /// - Parameter before: what was superseded when the write began.
    func boundWindow(_ writer: any ScopeWriter, since before: ScopeSize) throws {
        let (budget, present) = (Int64(limits.windowBytes), writer.state.superseded)
        guard present.weight > budget else { return }
        try writer.sweep(
            supersededBeyond: max(budget / 2, before.weight - Self.windowStep.bytes),
            limit: Int(Self.windowStep.rows + max(0, present.rows - before.rows)))
    }
}
