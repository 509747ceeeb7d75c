import TidemarkCore
import TidemarkWire

extension ScopeState {
    /// Forgets the openings that nobody needs any more: all that they wrote lies below the retention floor, where every
    /// reader has to fill anew whatever its checkpoint names, and no later one lists them in its name. A server that is
    /// started anew every day would otherwise have more of them to read with each request than anything else.
    ///
    /// Answers where the first of the remaining openings began; `nil` where none went. A forgotten opening that writes
    /// again begins again.
    public mutating func forgetOpenings() -> Version? {
        let named = incarnations.dropFirst().firstIndex { $0.start >= retentionFloor }.map { $0 - 1 }
        let needed = (named ?? incarnations.endIndex - 1) - Epoch.ancestorLimit
        guard needed > 0 else { return nil }
        incarnations.removeFirst(needed)
        return incarnations.first?.start
    }
}

extension ScopeState {
    var history: ScopeHistory {
        ScopeHistory(
            head: head, sweepFloor: sweepFloor, retentionFloor: retentionFloor,
            incarnations: incarnations.map { ScopeHistory.Incarnation(id: $0.id, start: $0.start) })
    }
}
