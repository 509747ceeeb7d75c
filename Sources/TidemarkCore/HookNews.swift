package import TidemarkWire

extension HookMachine.News {
    /// Openings of the store that name an epoch: as many of the latest as wrote before the head.
    package static let openings = Epoch.ancestorLimit + 1

    /// News as a store has them.
    ///
    /// - Parameter openings: the latest openings that wrote before the head, as `id start,id start`, in any order.
    package init(scope: Scope, head: Version, told: Version, time: Int64, openings: String) {
        let incarnations = openings.split(separator: ",").compactMap { text -> ScopeHistory.Incarnation? in
            let numbers = text.split(separator: " ").compactMap { Int64($0) }
            guard let id = numbers.first, let start = numbers.last, numbers.count == 2 else { return nil }
            return ScopeHistory.Incarnation(id: id, start: start)
        }
        let history = ScopeHistory(
            head: head, sweepFloor: 0, retentionFloor: 0, incarnations: incarnations.sorted { $0.start < $1.start })
        self.init(scope: scope, head: head, told: told, time: time, epoch: history.epoch(of: head).text)
    }
}
