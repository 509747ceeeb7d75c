import Testing

@testable import TidemarkCore

@Suite("Which of several engines on one file syncs it")
struct EngineLeaseTests {
    /// The file, and engines that look at it at the same moments of one clock.
    private final class World {
        var entry: EngineLease.Entry?
        /// In milliseconds.
        var now: Int64 = 1_000_000
        /// Holders whose processes are known to have ended.
        var gone: Set<String> = []
        var engines: [String: EngineLease] = [:]

        init() { for name in ["one", "two", "three"] { add(name) } }

        func add(_ name: String, _ work: Set<String> = ["a"], poll: Int64 = 1_000) {
            engines[name] = EngineLease(name: name, work: work, poll: poll)
        }

        func drives(_ name: String) -> Bool { engines[name]?.isDriving ?? false }

        /// Lets an engine look. Returns whether it wrote.
        @discardableResult
        func look(_ name: String) -> Bool {
            let isGone = entry.map { gone.contains($0.holder) } ?? false
            let moment = Instant(milliseconds: now)
            guard let next = engines[name]?.look(at: entry, isGone: isGone, now: moment) else { return false }
            entry = next
            return true
        }
    }

    private let world = World()

    /// Time passes in which an engine looks every second, waits and writes nothing.
    private func pass(_ milliseconds: Int64, for name: String, sourceLocation: SourceLocation = #_sourceLocation) {
        let end = world.now + milliseconds
        while world.now < end {
            world.now = min(end, world.now + 1_000)
            #expect(!world.look(name) && !world.drives(name), sourceLocation: sourceLocation)
        }
    }

    @Test("The first one syncs at once, and writes nothing more while nobody waits")
    func alone() {
        #expect(world.look("one") && world.drives("one"))
        for _ in 0..<1_000 {
            world.now += 60_000
            #expect(!world.look("one") && world.drives("one"))
        }
    }

    @Test("An engine that waits asks at once, hears a sign, and asks again after a pause while the other one answers")
    func asked() {
        world.look("one")
        #expect(world.look("two") && !world.drives("two") && world.entry?.isAsked == true)
        for _ in 0..<100 {
            // Until the holder looks, and for the length of the pause behind its sign, nothing is written.
            #expect(!world.look("two"))
            #expect(world.look("one") && world.drives("one") && world.entry?.isAsked == false)
            #expect(!world.look("two"))
            world.now += EngineLease.pause - 1
            #expect(!world.look("two") && !world.look("one"))
            world.now += 1
            #expect(world.look("two") && world.entry?.isAsked == true)
            pass(EngineLease.patience - 1, for: "two")
        }
    }

    @Test("A holder that gives no sign in time has lost its turn, and waits itself when it is back")
    func silent() {
        world.look("one")
        world.look("two")
        pass(EngineLease.patience - 1, for: "two")
        world.now += 1
        #expect(world.look("two") && world.drives("two") && world.entry?.holder == "two")
        #expect(world.look("one") && !world.drives("one") && world.entry?.isAsked == true)
        #expect(world.look("two") && world.drives("two"))
        #expect(!world.look("one") && !world.drives("one"))
    }

    @Test("Where the holder has stopped, or its process has ended, the next look takes over")
    func ended() {
        world.look("one")
        world.look("two")
        world.gone = ["one"]
        #expect(world.look("two") && world.drives("two"))
        // It was not asked, and had no time to answer.
        world.gone = ["two"]
        #expect(world.look("three") && world.drives("three"))
        world.entry = nil
        #expect(world.look("one") && world.drives("one"))
        // Its own name is no reason to begin anew, whatever is known of its process.
        world.gone = ["one"]
        #expect(!world.look("one") && world.drives("one"))
    }

    @Test("One that was suspended while it waited does not take its own sleep for the other one's silence")
    func suspended() {
        world.look("one")
        world.look("two")
        world.look("one")
        world.now += 3_600_000
        #expect(!world.look("two") && !world.drives("two"))
        // Before its question too.
        world.now += 3_600_000
        #expect(world.look("two") && !world.drives("two"))
    }

    @Test("Nor with a question in the file: the other one may have slept as long, and answers when it is back")
    func sleptOnQuestion() {
        world.look("one")
        world.look("two")
        world.now += 3_600_000
        #expect(!world.look("two") && !world.drives("two"))
        #expect(world.look("one") && world.drives("one"))
        #expect(!world.look("two") && !world.drives("two"))
    }

    @Test(
        "A question that did not get into the file, or was overwritten, is asked again and not held against the other")
    func unheard() {
        world.look("one")
        let before = world.entry
        world.look("two")
        world.entry = before
        world.now += EngineLease.patience
        #expect(world.look("two") && !world.drives("two") && world.entry?.isAsked == true)
        pass(EngineLease.patience - 1, for: "two")
        world.now += 1
        #expect(world.look("two") && world.drives("two"))
    }

    @Test("Of two that wait one takes over, and the other one waits for that one")
    func several() {
        world.look("one")
        world.look("two")
        #expect(!world.look("three"))
        pass(EngineLease.patience - 1, for: "two")
        world.now += 1
        #expect(world.look("two") && world.drives("two"))
        #expect(world.look("three") && !world.drives("three") && world.entry?.holder == "two")
    }

    @Test("An engine waits for one that does all of its work, takes over from one that does less, else both go on")
    func work() {
        world.add("more", ["a", "b"])
        world.add("other", ["c"])
        world.look("one")
        #expect(world.look("more") && world.drives("more"))
        #expect(world.look("one") && !world.drives("one"))
        let entry = world.entry
        #expect(!world.look("other") && world.drives("other"))
        #expect(world.entry == entry)
        // The holder's work has changed, and the next engine that asks hears of it.
        world.engines["more"]?.work = ["b"]
        #expect(world.look("more") && world.entry?.work == ["b"])
        #expect(!world.look("one") && world.drives("one"))
    }

    @Test("A holder that looks rarely has as many looks for its sign, however often the other one looks")
    func rare() {
        world.add("rare", poll: 10_000)
        world.look("rare")
        world.look("one")
        pass(EngineLease.looks * 10_000 - 1, for: "one")
        world.now += 1
        #expect(world.look("one") && world.drives("one"))
        // One that looks rarely itself need not wait longer for one that does not.
        world.look("rare")
        pass(EngineLease.patience - 1, for: "rare")
        world.now += 1
        #expect(world.look("rare") && world.drives("rare"))
        // No interval is too long or too short to reckon with.
        for poll in [Int64.max, .min] {
            world.entry = nil
            world.add("never", poll: poll)
            world.look("never")
            world.look("three")
            pass(EngineLease.patience - 1, for: "three")
        }
    }

    @Test("A holder that looks less often from now on says so at its next look, once")
    func slower() {
        world.look("one")
        world.engines["one"]?.poll = 30_000
        #expect(world.look("one") && world.drives("one") && world.entry?.poll == 30_000)
        #expect(!world.look("one"))
        world.look("two")
        pass(EngineLease.looks * 30_000 - 1, for: "two")
    }

    @Test("A holder that has stopped says so with its next sign, and gives way to one that can sync, but once")
    func stopped() {
        for name in ["one", "two"] { world.add(name, ["a", EngineLease.able]) }
        world.look("one")
        world.look("two")
        world.engines["one"]?.note(EngineLease.able, false)
        #expect(world.look("one") && world.drives("one"))
        #expect(world.look("two") && world.drives("two"))
        #expect(world.look("one") && !world.drives("one"))
        #expect(world.engines["one"]?.isHolderAble == true)
        // Where that one stops too, neither is better than the other.
        world.engines["two"]?.note(EngineLease.able, false)
        #expect(world.look("two") && world.drives("two"))
        #expect(!world.look("one") && !world.drives("one"))
        #expect(world.engines["one"]?.isHolderAble == false)
    }
}
