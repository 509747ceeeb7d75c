import GRDB
import Tidemark

/// An act of a second process on a device's file: an extension of the app, say.
enum SecondAct: Hashable, Sendable {
    /// It is started, and its engine runs.
    case start
    /// Its engine runs no more, and it goes on.
    case stop
    case sync
    /// It is killed, at once or after so many half uses of its file and wire.
    case kill(after: Int)
    /// It does one of the app's acts.
    case edit(act: String, choice: UInt64)
    /// The app's engine runs no more, and the app goes on.
    case resign
    /// The app is started, or its engine runs again.
    case resume
    /// Time goes by, enough to find out that whoever syncs the file has gone, or gives no sign.
    case wait
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension World {
    /// How long ``SecondAct/wait`` lasts, in milliseconds.
    private static let takeOver: Int64 = 15_000

    func perform(_ act: SecondAct, on device: SimulatedDevice) throws {
        switch act {
        case .start: try startSecond(device)
        case .stop: device.second?.endRunning()
        case .sync: device.second?.sync()
        case .kill(let after):
            if after > 0 { device.second?.remaining = after } else { device.second?.kill() }
        case .edit(let name, let choice): try edit(device, name, choice, by: device.second)
        case .resign: device.process?.endRunning()
        case .resume:
            try start(device)
            device.process?.run()
        case .wait: pass(Self.takeOver)
        }
    }

    /// It moves no files: they are the app's affair, and such an engine waits for one that moves them too.
    private func startSecond(_ device: SimulatedDevice) throws {
        if let second = device.second, second.isAlive { return second.run() }
        let process = SimulatedProcess(device: device.number, isSecond: true, seed: draw(), in: self)
        device.second = process
        try run(process, on: device, nil)
        device.holder = try Self.holder(in: device) ?? "device-\(device.number)"
    }

    /// Counts how often another process than before syncs a file.
    func lookForHandovers() throws {
        for device in devices where device.holder != nil {
            guard let holder = try Self.holder(in: device), holder != device.holder else { continue }
            note("\(holder) syncs")
            device.holder = holder
            handovers += 1
        }
    }

    private static func holder(in device: SimulatedDevice) throws -> String? {
        try device.file.queue.unsafeRead { db in
            try String.fetchOne(
                db, sql: "SELECT json_extract(value, '$.holder') FROM tidemark_meta WHERE key = 'lease'")
        }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension SimulatedDevice {
    /// Whether an engine is one of this device's processes.
    func isOwn(_ engine: String) -> Bool { engine == "device-\(number)" || engine == "device-\(number)-second" }
}

extension SecondAct {
    /// The act as the words of a script.
    var words: String {
        switch self {
        case .start: "start"
        case .stop: "stop"
        case .sync: "sync"
        case .kill(let after): "kill \(after)"
        case .edit(let act, let choice): "edit \(act) \(choice)"
        case .resign: "resign"
        case .resume: "resume"
        case .wait: "wait"
        }
    }

    init?(words: [String]) {
        switch (words.first, words.count) {
        case ("start", 1): self = .start
        case ("stop", 1): self = .stop
        case ("sync", 1): self = .sync
        case ("resign", 1): self = .resign
        case ("resume", 1): self = .resume
        case ("wait", 1): self = .wait
        case ("kill", 2):
            guard let after = Int(words[1]), after >= 0 else { return nil }
            self = .kill(after: after)
        case ("edit", 3):
            guard let choice = UInt64(words[2]) else { return nil }
            self = .edit(act: words[1], choice: choice)
        default: return nil
        }
    }

    /// Puts some acts of second processes between the steps of a world. They are drawn apart from the steps, so that
    /// these are the same with and without.
    static func insert(into steps: inout [Step], seed: UInt64, devices: Int, acts: [String]) {
        var generator = SplitMix64(seed: seed ^ 0x7365_636f_6e64)
        func number(_ count: Int) -> Int { Int(generator.next() % UInt64(max(1, count))) }
        func edit() -> SecondAct { .edit(act: acts[number(acts.count)], choice: generator.next() >> 40) }
        func insert(_ story: [SecondAct], on device: Int) {
            let places = story.map { _ in number(steps.count + 1) }.sorted()
            for (act, place) in zip(story, places).reversed() { steps.insert(.second(device, act), at: place) }
        }
        for _ in 0..<(1 + number(2)) {
            // The turn goes to the second process and back.
            let end: SecondAct = number(2) == 0 ? .stop : .kill(after: number(2) * number(24))
            insert([.start, edit(), .resign, .wait, edit(), .resume, end, .wait, edit()], on: number(devices))
        }
        for _ in 0..<number(6) {
            insert([[.start, .stop, .sync, .kill(after: number(24)), .resign, edit()][number(6)]], on: number(devices))
        }
    }
}
