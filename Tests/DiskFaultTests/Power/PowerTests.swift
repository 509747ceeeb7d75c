import GRDB
import Testing
import Tidemark

/// The power goes off at random calls; what people were told is there when it is back.
///
/// `TIDEMARK_POWER_SEEDS` sets how many stories of each kind there are, `TIDEMARK_POWER_SEED` the first of them.
@Suite("The power goes off at any moment, and everybody goes on from what is left")
struct PowerTests {
    private static let seeds = Amount.named("TIDEMARK_POWER_SEEDS", or: 1)
    private static let first = Amount.named("TIDEMARK_POWER_SEED", or: 1)

    private func play(_ story: PowerStory) async -> PowerStory.Tally {
        var tally = PowerStory.Tally()
        for seed in Self.first..<(Self.first + Self.seeds) { await story.play(seed: UInt64(seed), into: &tally) }
        for finding in tally.findings.prefix(20) { Issue.record(Comment(rawValue: finding)) }
        #expect(tally.cuts > 0)
        if Self.seeds > 1 { Amount.tell("\(story): \(tally.cuts) cuts, \(tally.lost) commits lost") }
        return tally
    }

    @Test("a server loses nothing that it has acknowledged (I1)", .timeLimit(.minutes(600)))
    func server() async { _ = await play(PowerStory(victim: .server)) }

    @Test("a device that syncs its commits loses no edit", .timeLimit(.minutes(600)))
    func device() async {
        _ = await play(PowerStory(victim: .device))
        _ = await play(PowerStory(victim: .device, opening: .queue))
    }

    @Test(
        "one that does not may lose its last edits; nothing is sent twice, and nothing wedges (I8, I11)",
        .timeLimit(.minutes(600)))
    func tail() async {
        _ = await play(PowerStory(victim: .device, opening: .ordinaryPool, losesCommits: true))
        _ = await play(PowerStory(victim: .device, opening: .queue, losesNames: true, losesCommits: true))
    }
}
