import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension World {
    /// The operator asks something of a device, as soon as the server knows it.
    func ask(_ remedy: Remedy, of device: SimulatedDevice) throws {
        hasRemedies = true
        wantedRemedies[device.number] = remedy
        try askWanted()
    }

    /// Asks for what was to be asked of devices that the server did not know.
    func askWanted() throws {
        for (number, remedy) in wantedRemedies.sorted(by: { $0.key < $1.key }) {
            guard let query = try query(for: devices[number]), let name = query.client else { continue }
            work { [self] engine in
                let known = try await engine.devices(query).devices
                do { try await engine.remedy(remedy, for: name, of: query.principal) } catch is RemedyError { return }
                wantedRemedies[number] = nil
                // It took the place of the one before, which is counted here.
                for before in known.compactMap(\.remedy) where before.outcome?.result == .done {
                    doneRemedies[before.remedy.kind, default: 0] += 1
                }
            }
        }
    }

    /// Asks for what the server knows of a device; `nil` for one that has no name yet.
    private func query(for device: SimulatedDevice) throws -> FleetQuery? {
        var query = FleetQuery()
        query.client = try device.file.queue.unsafeRead { db in
            try String.fetchOne(db, sql: "SELECT value FROM tidemark_meta WHERE key = 'clientId'")
        }
        query.principal = access(of: device.number, to: app.scopes[0]).principal
        return query.client == nil ? nil : query
    }

    /// Each device says what came of what was asked last. A name that no file has any more says nothing.
    func checkRemedies(limit: Int64) throws {
        let start = time
        try findUntold()
        while !untoldRemedies.isEmpty, let due = timers.next, due - start <= limit {
            pass(max(0, due - time))
            flow()
            try oracle?.report()
            try findUntold()
        }
        guard untoldRemedies.isEmpty else {
            throw Violation("remedy", "nothing was told of \(untoldRemedies.joined(separator: "; "))")
        }
    }

    private func findUntold() throws {
        untoldRemedies = []
        for device in devices {
            guard let query = try query(for: device) else { continue }
            let (number, scopes) = (device.number, app.parts)
            work { [self] engine in
                for known in try await engine.devices(query).devices where scopes.contains(known.scope) {
                    guard let asked = known.remedy, asked.outcome?.number != asked.number else { continue }
                    untoldRemedies.append("\(asked.remedy.kind) by device \(number) in \(known.scope)")
                }
            }
        }
    }

    /// Clears the remedies of all devices, and lets every app ask whether they go on.
    func clearRemedies() throws {
        for device in devices { try ask(.clear, of: device) }
        wakeAll()
    }

    func wakeAll() {
        for device in devices {
            guard let process = device.process, let engine = process.engine else { continue }
            process.start { await engine.wake() }
        }
        quiesce()
        flow()
    }
}

extension Remedy {
    /// The remedy as the words of a script.
    var words: String {
        switch self {
        case .slowDown(let interval): "\(kind) \(interval.wholeSeconds)"
        case .refill, .verify, .stop, .clear: kind
        }
    }

    init?(words: [String]) {
        switch (words.first, words.count) {
        case ("slowDown", 2):
            guard let seconds = Int64(words[1]), Self.intervals.contains(.seconds(seconds)) else { return nil }
            self = .slowDown(interval: .seconds(seconds))
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
                    .slowDown(interval: .seconds(5)),
                ][number(8)]
            steps.insert(.remedy(number(devices), remedy), at: number(steps.count + 1))
        }
    }
}
