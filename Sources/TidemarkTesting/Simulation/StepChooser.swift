import TidemarkServer

/// Makes up a world and what happens in it from a seed. Each world has only some kinds of trouble, and those often:
/// where everything goes wrong at once, nothing gets far (swarm testing; Groce and others, 2012).
struct StepChooser {
    private var generator: SplitMix64
    private let acts: [String]
    private var plan: WorldPlan
    private let scopeCount: Int
    /// How often each kind of step comes, in parts of their sum.
    private var weights: [(kind: Kind, weight: Int)] = []
    private var lossPercent = 0
    /// What acts pick again and again, on all devices, so that edits meet.
    private var favourites: [UInt64] = []

    enum Kind {
        case edit, sync, pass, flow, wait, longWait
        case kill, start, backUp, restore, clone, setClock, grant
        case serverRestart, serverKill, serverBackUp, serverRestore, serverClone, serverExchange, sweep, compact,
            serverFail, serverClock, serverChange
        case file, passFile, killFile, disk, serverDisk, eon
    }

    init(seed: UInt64, app: (acts: [String], scopeCount: Int, hasFiles: Bool)) {
        generator = SplitMix64(seed: seed)
        acts = app.acts
        scopeCount = app.scopeCount
        plan = WorldPlan(seed: generator.next())
        plan.deviceCount = [2, 2, 2, 3, 3, 4][number(6)]
        plan.userCount = chance(25) ? 2 : 1
        plan.nodeCount = [1, 1, 1, 2, 3][number(5)]
        plan.page = [1, 2, 2, 3, 50][number(5)]
        plan.shufflesTasks = chance(50)
        plan.hasWindow = chance(50)
        plan.hasForeignKeys = chance(7)
        plan.isHurried = chance(80)
        plan.isVerified = chance(20)
        favourites = (0..<3).map { _ in generator.next() >> 40 }
        lossPercent = chance(60) ? 10 + number(40) : 0
        var kinds = Self.everyday + Self.troubles.filter({ _ in chance(35) })
        if app.hasFiles { kinds += [[.file, .passFile]] + Self.fileTroubles.filter { _ in chance(50) } }
        for kinds in kinds {
            for kind in kinds { weights.append((kind, max(1, Self.weight(kind) * (50 + number(100)) / 100))) }
        }
    }

    private static let fileTroubles: [[Kind]] = [[.killFile], [.disk], [.serverDisk], [.eon, .compact]]

    private static let everyday: [[Kind]] = [[.edit], [.sync], [.pass], [.flow], [.wait], [.start]]
    /// Kinds that make little of a world each by itself stand together.
    private static let troubles: [[Kind]] = [
        [.longWait], [.kill], [.backUp, .restore], [.clone], [.setClock], [.grant], [.serverRestart], [.serverKill],
        [.serverBackUp, .serverRestore], [.serverClone, .serverExchange], [.sweep], [.longWait, .compact],
        [.serverFail], [.serverClock], [.serverChange],
    ]

    private static func weight(_ kind: Kind) -> Int {
        switch kind {
        case .edit: 300
        case .pass: 350
        case .passFile: 200
        case .sync, .flow, .wait: 60
        case .kill, .killFile, .file: 100
        case .start, .serverKill, .grant: 60
        case .backUp, .serverBackUp, .restore, .serverRestore, .compact: 35
        case .serverClone, .serverExchange: 35
        case .longWait, .disk, .serverDisk, .eon: 40
        // It says something only between two pages of one scan.
        case .sweep: 100
        case .clone, .setClock, .serverRestart, .serverFail, .serverClock, .serverChange: 25
        }
    }

    /// The world's plan and its steps: most worlds are short, since most of what goes wrong does so early.
    mutating func script(limit: Int) -> (plan: WorldPlan, steps: [Step]) {
        let length = max(1, [limit / 4, limit / 4, limit / 4, limit / 2, limit][number(5)])
        return (plan, (0..<length).map { _ in step() })
    }

    private mutating func step() -> Step {
        let sum = weights.reduce(0) { $0 + $1.weight }
        var place = number(sum)
        for (kind, weight) in weights {
            if place < weight { return step(kind) }
            place -= weight
        }
        return .flow
    }

    private mutating func step(_ kind: Kind) -> Step {
        switch kind {
        case .edit:
            .edit(
                device: device(), act: acts[number(acts.count)],
                choice: chance(50) ? favourites[number(favourites.count)] : generator.next() >> 40)
        case .sync: .sync(device())
        case .pass: .pass(number(3), fate())
        case .flow: .flow
        case .wait: .wait(Int64([10, 500, 2_000, 12_000, 31_000][number(5)]))
        case .longWait: .wait(Int64([120_000, 3_600_000, 8 * 86_400_000][number(3)]))
        case .kill: kill()
        case .passFile: .passFile(number(3), fate())
        case .killFile: .killAt(device(), point: KillPoint.files[number(KillPoint.files.count)], isAfter: chance(50))
        case .file: .file(device(), FileAct.allCases[number(FileAct.allCases.count)], choice: UInt64(number(6)))
        // Longer than a blob is kept that nothing names.
        case .eon: .wait(8 * 86_400_000)
        case .disk: .disk(device(), isFull: chance(50))
        case .serverDisk: .server(.disk(isFull: chance(50)))
        case .start: .start(device())
        case .backUp: .backUp(device())
        case .restore: .restore(device())
        case .clone: .clone(device(), to: device())
        case .setClock: .setClock(device(), clock())
        case .grant:
            .grant(
                user: number(plan.userCount), scope: number(scopeCount),
                [.none, .read, .readWrite, .readWrite][number(4)])
        case .serverRestart: .server(.restart)
        case .serverKill: .server(.kill(after: number(18)))
        case .serverBackUp: .server(.backUp)
        case .serverRestore: .server(.restore)
        case .serverClone: .server(.clone)
        case .serverExchange: .server(.exchange)
        case .sweep: .server(.sweep)
        case .compact: .server(.compact(7_200_000))
        case .serverFail: .server(.fail(1 + number(4)))
        case .serverChange: .server(.change(node: number(plan.nodeCount), to: 1 + generator.next() >> 40))
        case .serverClock: .server(.setClock(clock()))
        }
    }

    private mutating func kill() -> Step {
        let device = device()
        if chance(15) { return .kill(device, after: 0) }
        if chance(30) { return .kill(device, after: 1 + number(24)) }
        // Most of them are seldom come to.
        let points = chance(60) ? KillPoint.everyday : KillPoint.all
        return .killAt(device, point: points[number(points.count)], isAfter: chance(50))
    }

    private mutating func fate() -> Step.Fate {
        guard chance(lossPercent) else { return .arrives }
        return switch number(8) {
        case 0, 1: .isLost
        case 2: .isRepeated
        case 3: .isCut(number(1001))
        case 4, 5: .isReplaced
        default: .isOld
        }
    }

    private mutating func clock() -> Int64 {
        [0, 3_600_000, -3_600_000, 365 * 86_400_000, -365 * 86_400_000, 60_000][number(6)]
    }

    private mutating func device() -> Int { number(plan.deviceCount) }
    private mutating func chance(_ percent: Int) -> Bool { number(100) < percent }
    private mutating func number(_ count: Int) -> Int { Int(generator.next() % UInt64(max(1, count))) }
}
