import Testing

@testable import TidemarkCore

/// How eagerly an engine works under the conditions that an app tells (E6).
@Suite struct SyncSchedulerTests {
    private static let base = SyncScheduler.Settings(
        tickMilliseconds: 30_000, longestWaitMilliseconds: 20_000, receivesNudges: true)
    private static let rest: Int64 = 15 * 60_000

    /// A name to change each condition by.
    private enum Change: CaseIterable {
        case background, offline, metered, lowPower
    }

    private static func conditions(_ changes: Set<Change>) -> SyncScheduler.Conditions {
        var conditions = SyncScheduler.Conditions()
        conditions.isInForeground = !changes.contains(.background)
        conditions.isOnline = !changes.contains(.offline)
        conditions.isMetered = changes.contains(.metered)
        conditions.isLowPower = changes.contains(.lowPower)
        return conditions
    }

    private static let all = (0..<16).map { bits in
        Set(Change.allCases.enumerated().filter { bits >> $0.offset & 1 == 1 }.map(\.element))
    }

    @Test("A stream is open in sight and with a network alone; ticks are rarer where power or bytes are dear")
    func settings() {
        for changes in Self.all {
            var scheduler = SyncScheduler()
            _ = scheduler.note(Self.conditions(changes))
            let settings = scheduler.adapted(Self.base)
            let rests = changes.contains(.background) || changes.contains(.offline)
            let spares = changes.contains(.metered) || changes.contains(.lowPower)
            #expect(settings.receivesNudges == !rests, "\(changes)")
            #expect(settings.tickMilliseconds == (rests ? Self.rest : spares ? 120_000 : 30_000), "\(changes)")
            #expect(settings.longestWaitMilliseconds == (rests ? Self.rest : 20_000), "\(changes)")
        }
    }

    @Test("Conditions make nothing more eager than the app has it")
    func never() {
        let calm = SyncScheduler.Settings(
            tickMilliseconds: .max, longestWaitMilliseconds: 3_600_000, receivesNudges: false)
        for changes in Self.all {
            var scheduler = SyncScheduler()
            _ = scheduler.note(Self.conditions(changes))
            #expect(scheduler.adapted(calm) == calm, "\(changes)")
        }
    }

    @Test("Coming into sight or to a network pulls, where there is one; what is known already does nothing")
    func effects() {
        for before in Self.all {
            for after in Self.all {
                var scheduler = SyncScheduler()
                _ = scheduler.note(Self.conditions(before))
                let effects = scheduler.note(Self.conditions(after))
                let comes =
                    before.contains(.background) && !after.contains(.background)
                    || before.contains(.offline) && !after.contains(.offline)
                let expected: [SyncScheduler.Effect] =
                    before == after ? [] : comes && !after.contains(.offline) ? [.adapt, .pull] : [.adapt]
                #expect(effects == expected, "\(before) to \(after)")
                #expect(scheduler.conditions == Self.conditions(after))
            }
        }
    }
}
