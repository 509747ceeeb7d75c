extension SyncMeasures {
    /// Makes the measures that one applied answer adds.
    init(_ outcome: Applier.Outcome) {
        self.init()
        (received, applied, entities) = (outcome.received, outcome.applied, outcome.bytes.traffic)
    }

    func adding(_ outcome: Applier.Outcome) -> SyncMeasures {
        var sum = self
        sum += SyncMeasures(outcome)
        return sum
    }
}
