import TidemarkWire

extension SyncServer {
    /// The superseded rows that one write removes at most, beside as many as it has superseded itself: it holds up the
    /// others for so long.
    private static let windowStep = ScopeSize(rows: 1000, bytes: 64 << 20)

    /// Ends the window of a scope that holds too much, whatever its age, so that small edits of large records fill no
    /// disk (I14): rows that were superseded first go first, until half of the budget is left.
    ///
    /// - Parameter before: the size of the superseded rows when the write began.
    func boundWindow(_ writer: any ScopeWriter, since before: ScopeSize) throws {
        let (budget, present) = (Int64(limits.windowBytes), writer.state.superseded)
        guard present.weight > budget else { return }
        try writer.sweep(
            supersededBeyond: max(budget / 2, before.weight - Self.windowStep.bytes),
            limit: Int(Self.windowStep.rows + max(0, present.rows - before.rows)))
    }
}
