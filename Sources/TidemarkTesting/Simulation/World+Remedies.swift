import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension World {
    /// The operator asks something of a device, as far as the server knows it.
    func ask(_ remedy: Remedy, of device: SimulatedDevice) throws {
        hasRemedies = true
        let name = try device.file.queue.unsafeRead { db in
            try String.fetchOne(db, sql: "SELECT value FROM tidemark_meta WHERE key = 'clientId'")
        }
        guard let name else { return }
        let user = access(of: device.number, to: app.scopes[0]).principal
        work { engine in
            do { try await engine.remedy(remedy, for: name, of: user) } catch is RemedyError {}
        }
    }

    /// What was asked is over, and every app asks whether it is.
    func clearRemedies() throws {
        for device in devices { try ask(.clear, of: device) }
        for device in devices {
            guard let process = device.process, let engine = process.engine else { continue }
            process.start { await engine.wake() }
        }
        settle()
        flow()
    }
}

extension Remedy {
    /// The remedy as the words of a script.
    var words: String {
        switch self {
        case .slowDown(let seconds): "\(kind) \(seconds)"
        case .refill, .verify, .stop, .clear: kind
        }
    }

    init?(words: [String]) {
        switch (words.first, words.count) {
        case ("slowDown", 2):
            guard let seconds = Int64(words[1]), Self.intervals.contains(seconds) else { return nil }
            self = .slowDown(seconds: seconds)
        case ("refill", 1): self = .refill
        case ("verify", 1): self = .verify
        case ("stop", 1): self = .stop(message: "Stopped.")
        case ("clear", 1): self = .clear
        default: return nil
        }
    }

    /// Puts some remedies between the steps of a world. They are drawn apart from the steps, so that these are the same
    /// with and without.
    static func insert(into steps: inout [Step], seed: UInt64, devices: Int) {
        var generator = SplitMix64(seed: seed ^ 0x7265_6d65_6479)
        func number(_ count: Int) -> Int { Int(generator.next() % UInt64(max(1, count))) }
        for _ in 0..<(1 + number(5)) {
            let remedy: Remedy =
                [
                    .refill, .refill, .refill, .stop(message: "Stopped."), .stop(message: "Stopped."), .clear, .verify,
                    .slowDown(seconds: 5),
                ][number(8)]
            steps.insert(.remedy(number(devices), remedy), at: number(steps.count + 1))
        }
    }
}
