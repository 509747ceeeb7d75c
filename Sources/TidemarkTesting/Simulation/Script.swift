import TidemarkServer

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Simulation {
    /// What happens in one world, step by step, as a text that people can read and keep as a test.
    ///
    /// The first line makes the world, each further line is one step:
    /// ```
    /// world seed 7 devices 2 users 1 page 2
    /// 0 edit rename 4711
    /// 0 sync
    /// pass 0 lost
    /// 1 restore
    /// server sweep
    /// ```
    public struct Script: Hashable, Sendable, LosslessStringConvertible {
        var plan: WorldPlan
        var steps: [Step]

        init(plan: WorldPlan, steps: [Step]) {
            self.plan = plan
            self.steps = steps
        }

        /// Whether the server's store is the one on SQLite, with its threads and its file, and not one in memory. What
        /// happens is the same.
        public var usesSQLite: Bool {
            get { plan.usesSQLite }
            set { plan.usesSQLite = newValue }
        }

        /// How many steps it has.
        public var count: Int { steps.count }

        /// Reads a script; `nil` where a line is not understood. Empty lines and what follows `#` are passed over.
        public init?(_ description: String) {
            let lines = description.split(whereSeparator: \.isNewline).map { line in
                line.prefix { $0 != "#" }.split(separator: " ").map(String.init)
            }.filter { !$0.isEmpty }
            guard let first = lines.first, let plan = WorldPlan(words: first) else { return nil }
            var steps: [Step] = []
            for line in lines.dropFirst() {
                guard let step = Step(words: line) else { return nil }
                steps.append(step)
            }
            self.init(plan: plan, steps: steps)
        }

        /// The text.
        public var description: String { ([plan.line] + steps.map(\.line)).joined(separator: "\n") }
    }
}

extension WorldPlan {
    var line: String {
        "world seed \(seed) devices \(deviceCount) users \(userCount) page \(page)"
            + (nodeCount > 1 ? " nodes \(nodeCount)" : "")
            + [
                (shufflesTasks, " shuffled"), (!hasWindow, " windowless"), (!hasForeignKeys, " keyless"),
                (isHurried, " hurried"), (!isVerified, " unverified"), (usesSQLite, " sqlite"),
                (sendsEarly, " early"),
            ].map { $0 ? $1 : "" }.joined()
    }

    init?(words: [String]) {
        guard words.first == "world" else { return nil }
        self.init(seed: 1)
        (shufflesTasks, hasWindow) = (words.contains("shuffled"), !words.contains("windowless"))
        hasForeignKeys = !words.contains("keyless")
        (isHurried, isVerified) = (words.contains("hurried"), !words.contains("unverified"))
        (usesSQLite, sendsEarly) = (words.contains("sqlite"), words.contains("early"))
        let flags = ["shuffled", "windowless", "keyless", "hurried", "unverified", "sqlite", "early"]
        let words = words.dropFirst().filter { !flags.contains($0) }
        guard words.count % 2 == 0 else { return nil }
        for index in stride(from: 0, to: words.count, by: 2) {
            guard let number = UInt64(words[index + 1]) else { return nil }
            switch (words[index], Int(exactly: number)) {
            case ("seed", _): seed = number
            case ("devices", let count?) where 1...16 ~= count: deviceCount = count
            case ("users", let count?) where 1...16 ~= count: userCount = count
            case ("nodes", let count?) where 1...16 ~= count: nodeCount = count
            case ("page", let size?) where 1...1000 ~= size: page = size
            default: return nil
            }
        }
    }
}

extension Step {
    /// The step as a line of a script.
    var line: String {
        switch self {
        case .edit(let device, let act, let choice): "\(device) edit \(act) \(choice)"
        case .sync(let device): "\(device) sync"
        case .pass(let place, let fate): "pass \(place)" + fate.suffix
        case .passFile(let place, let fate): "pass file \(place)" + fate.suffix
        case .flow: "flow"
        case .wait(let milliseconds): "wait \(milliseconds)"
        case .kill(let device, let after): "\(device) kill \(after)"
        case .killAt(let device, let point, let isAfter): "\(device) kill \(isAfter ? "after" : "before") \(point)"
        case .start(let device): "\(device) start"
        case .backUp(let device): "\(device) backup"
        case .restore(let device): "\(device) restore"
        case .clone(let device, let other): "\(device) clone \(other)"
        case .setClock(let device, let offset): "\(device) clock \(offset)"
        case .grant(let user, let scope, let level): "user \(user) scope \(scope) \(level)"
        case .remedy(let device, let remedy): "\(device) remedy \(remedy.words)"
        case .second(let device, let act): "\(device) second \(act.words)"
        case .file(let device, let act, let choice): "\(device) file \(act) \(choice)"
        case .disk(let device, let isFull): "\(device) disk \(isFull ? "full" : "free")"
        case .server(let step): "server \(step.words)"
        }
    }

    init?(words: [String]) {
        if words.count > 1, let device = Int(words[0]), device >= 0 {
            guard let step = Self.step(device, Array(words.dropFirst())) else { return nil }
            self = step
            return
        }
        switch (words[0], words.count) {
        case ("flow", 1): self = .flow
        case ("wait", 2):
            guard let milliseconds = Int64(words[1]), milliseconds >= 0 else { return nil }
            self = .wait(milliseconds)
        case ("pass", 3...) where words[1] == "file":
            guard let place = Int(words[2]), place >= 0, let fate = Fate(words: Array(words.dropFirst(3))) else {
                return nil
            }
            self = .passFile(place, fate)
        case ("pass", 2...):
            guard let place = Int(words[1]), place >= 0, let fate = Fate(words: Array(words.dropFirst(2))) else {
                return nil
            }
            self = .pass(place, fate)
        case ("user", 5):
            guard let user = Int(words[1]), user >= 0, let scope = Int(words[3]), scope >= 0,
                let level = [Access.Level.none, .read, .readWrite].first(where: { "\($0)" == words[4] })
            else { return nil }
            self = .grant(user: user, scope: scope, level)
        case ("server", 2...):
            guard let step = ServerStep(words: Array(words.dropFirst())) else { return nil }
            self = .server(step)
        default: return nil
        }
    }

    private static func step(_ device: Int, _ words: [String]) -> Step? {
        switch (words[0], words.count) {
        case ("edit", 3): UInt64(words[2]).map { .edit(device: device, act: words[1], choice: $0) }
        case ("sync", 1): .sync(device)
        case ("kill", 2): Int(words[1]).map { .kill(device, after: max(0, $0)) }
        case ("kill", 3) where (KillPoint.all + KillPoint.files).contains(words[2]):
            ["before", "after"].firstIndex(of: words[1]).map {
                .killAt(device, point: words[2], isAfter: $0 == 1)
            }
        case ("start", 1): .start(device)
        case ("backup", 1): .backUp(device)
        case ("restore", 1): .restore(device)
        case ("clone", 2): Int(words[1]).map { .clone(device, to: max(0, $0)) }
        case ("clock", 2): Int64(words[1]).map { .setClock(device, $0) }
        case ("file", 3):
            FileAct(rawValue: words[1]).flatMap { act in UInt64(words[2]).map { .file(device, act, choice: $0) } }
        case ("disk", 2): ["full", "free"].contains(words[1]) ? .disk(device, isFull: words[1] == "full") : nil
        case ("second", 2...): SecondAct(words: Array(words.dropFirst())).map { .second(device, $0) }
        case ("remedy", 2...): Remedy(words: Array(words.dropFirst())).map { .remedy(device, $0) }
        default: nil
        }
    }
}

extension Step.Fate {
    fileprivate var suffix: String {
        switch self {
        case .arrives: ""
        case .isLost: " lost"
        case .isRepeated: " repeated"
        case .isCut(let thousandths): " cut \(thousandths)"
        case .isReplaced: " replaced"
        case .isOld: " old"
        }
    }

    fileprivate init?(words: [String]) {
        switch (words.first, words.count) {
        case (nil, _): self = .arrives
        case ("lost", 1): self = .isLost
        case ("repeated", 1): self = .isRepeated
        case ("replaced", 1): self = .isReplaced
        case ("old", 1): self = .isOld
        case ("cut", 2):
            guard let thousandths = Int(words[1]), 0...1000 ~= thousandths else { return nil }
            self = .isCut(thousandths)
        default: return nil
        }
    }
}

extension Step.ServerStep {
    fileprivate var words: String {
        switch self {
        case .restart: "restart"
        case .kill(let after): "kill \(after)"
        case .backUp: "backup"
        case .restore: "restore"
        case .clone: "clone"
        case .exchange: "exchange"
        case .sweep: "sweep"
        case .compact(let milliseconds): "compact \(milliseconds)"
        case .fail(let count): "fail \(count)"
        case .setClock(let offset): "clock \(offset)"
        case .disk(let isFull): "disk \(isFull ? "full" : "free")"
        case .change(let node, let settings): "node \(node) settings \(settings)"
        }
    }

    fileprivate init?(words: [String]) {
        if words.count == 2, words[0] == "disk", ["full", "free"].contains(words[1]) {
            self = .disk(isFull: words[1] == "full")
            return
        }
        switch (words[0], words.count == 2 ? Int64(words[1]) : nil) {
        case ("node", nil):
            guard words.count == 4, words[2] == "settings", let node = Int(words[1]), node >= 0,
                let settings = UInt64(words[3])
            else { return nil }
            self = .change(node: node, to: settings)
        case ("restart", nil): self = .restart
        case ("backup", nil): self = .backUp
        case ("restore", nil): self = .restore
        case ("clone", nil): self = .clone
        case ("exchange", nil): self = .exchange
        case ("sweep", nil): self = .sweep
        case ("compact", let milliseconds?): self = .compact(max(0, milliseconds))
        case ("kill", let after?): self = .kill(after: Int(clamping: max(0, after)))
        case ("fail", let count?): self = .fail(Int(clamping: max(0, count)))
        case ("clock", let offset?): self = .setClock(offset)
        default: return nil
        }
    }
}
