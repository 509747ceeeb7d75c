import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

/// One simulated world: devices with real engines on real SQLite databases, the real server engine on a store in
/// memory or on its SQLite file, and between them a wire and a clock that do what the script says.
///
/// Unchecked because everything of a world happens on one thread.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class World: @unchecked Sendable {
    let laboratory: Laboratory
    var app: SimulatedApp { laboratory.app }
    let plan: WorldPlan
    let executor = SimulatedExecutor()
    private var generator: SplitMix64
    private var lastNumber = 0
    private(set) var trace = Trace()

    /// Milliseconds since the world began.
    private(set) var time: Int64 = 0
    var timers = Timers()
    var messages: [Message] = []
    /// Answers that devices have had, by device and question: a proxy may give one again.
    var answers: [String: [TransportResponse]] = [:]
    /// Whether every message arrives: the liveness phase.
    var isCalm = false
    var devices: [SimulatedDevice] = []
    var server: SimulatedServer
    var serial = 0
    /// Holds what happens against the guarantees.
    private(set) var oracle: Oracle?
    /// Devices whose files were put back or replaced, or gave a scope away, with what only they had. Who has the same
    /// file as another one is among them: what the server told one of them, it does not tell the other one again.
    var lostDevices: Set<Int> = []
    /// Devices whose clocks were ever set.
    var wrongClocks: Set<Int> = []
    var hasWrongServerClock = false
    /// Whether the operator has asked something of a device.
    var hasRemedies = false
    /// What devices have carried out for the operator, by its kind, and what they have not told of yet.
    var wantedRemedies: [Int: Remedy] = [:]
    var doneRemedies: [String: Int] = [:]
    var untoldRemedies: [String] = []
    /// How often another process came to sync a file than before.
    var handovers = 0
    /// Requests for changes behind an answer that was not applied yet.
    var earlyRequests = 0
    /// What happened to bytes of attachments.
    var fileCounts: [String: Int] = [:]
    /// Questions for digests.
    var comparisonCount = 0
    /// Where apps and servers died, and how often.
    private(set) var deaths: [String: Int] = [:]
    /// What the server grants, where it is not everything.
    var grants: [Grant: Access.Level] = [:]

    struct Grant: Hashable {
        var user: Int
        var scope: Scope
    }

    init(in laboratory: Laboratory, plan: WorldPlan, verbose: Bool = false) throws {
        self.laboratory = laboratory
        self.plan = plan
        if verbose { trace.keepLines() }
        generator = SplitMix64(seed: plan.seed)
        server = try SimulatedServer(
            seed: generator.next(),
            file: plan.usesSQLite ? (laboratory.serverFile, laboratory.serverCopy, executor) : nil)
        try server.open(in: self)
        for number in 0..<plan.deviceCount { devices.append(try SimulatedDevice(number, in: self)) }
        oracle = Oracle(of: self)
        for device in devices { try start(device) }
    }

    // MARK: What devices ask of it

    /// When this world began, on a clock that is right.
    static let beginning: Int64 = 1_800_000_000_000

    func wallClock(of device: Int) -> Int64 { Self.beginning + time + devices[device].clockOffset }

    func draw() -> UInt64 { generator.next() }

    func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    func sleep(_ device: Int, until due: Int64) async throws {
        let number = nextNumber()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                self.timers.add(number, of: device, due: due, continuation)
            }
        } onCancel: {
            self.timers.cancel(number)
        }
    }

    // MARK: Going on

    private static let longestWatch: Int64 = 120_000

    /// Everybody goes on to where they wait for a message or for time to pass.
    func quiesce() {
        let isShuffled = plan.shufflesTasks
        executor.drain { count in isShuffled ? Int(generator.next() % UInt64(count)) : 0 }
        oracle?.look()
    }

    /// Lets so many milliseconds pass; whoever wakes up goes on at once.
    func pass(_ milliseconds: Int64) {
        let end = time + milliseconds
        // Nobody stays awake so long: the devices are shut, and wake up late.
        if milliseconds > Self.longestWatch { time = end }
        while let due = timers.next, due <= end {
            time = max(time, due)
            timers.fire(at: time)
            quiesce()
        }
        time = end
    }

    /// An app or the server dies in the midst of what it does.
    func noteDeath(_ point: String) {
        deaths[point, default: 0] += 1
        note("death: \(point)")
    }

    func note(_ event: @autoclosure () -> String) { trace.note(time, event()) }
    func note(_ event: @autoclosure () -> String, _ bytes: [UInt8]) { trace.note(time, event(), bytes) }
}

/// What makes a world besides its steps.
struct WorldPlan: Hashable, Sendable {
    var seed: UInt64
    var deviceCount = 2
    var userCount = 1
    /// Nodes of the server, on one store.
    var nodeCount = 1
    /// Rows on a page, and operations in a request.
    var page = 2
    /// Whether tasks that could go on do so in random order.
    var shufflesTasks = true
    /// Whether superseded rows are kept for a while before they are swept.
    var hasWindow = true
    /// Whether the app's connections enforce its foreign keys. Half of a world's time goes where they do: SQLite
    /// prepares every statement anew when enforcement is switched, as it is around each page.
    var hasForeignKeys = true
    /// Whether the server's store is the one on SQLite, and not in memory. The world is the same, and takes longer.
    var usesSQLite = false
    /// Whether devices send the next request while they apply an answer.
    var sendsEarly = false
    /// Whether people ask for a sync when the troubles end; else time has to bring it.
    var isHurried = false
    /// Whether the devices compare themselves with the server at the end, as an app may.
    var isVerified = true
}
