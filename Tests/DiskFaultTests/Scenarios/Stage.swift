import GRDB
import Tidemark
import TidemarkSQLite
import TidemarkServer
import TidemarkWire

/// A server and two devices, each on a disk of its own, playing the steps of a scenario and getting up again after
/// whatever happens to them.
final class Stage {
    /// Whose disk fails.
    enum Victim: String, CaseIterable, Sendable { case server, device }

    let scenario: Scenario
    let board = Switchboard()
    let server: DiskServer
    let devices: [DiskDevice]
    let victim: Victim
    /// What a step found that no fault explains.
    private(set) var findings: [String] = []
    /// How often something had to be opened anew, or a step tried again.
    private(set) var recoveries = 0
    private var seed: UInt64
    /// The copies that were made.
    var kept: Scene?

    /// The disks as they were before the scenario's own steps.
    struct Scene: Sendable {
        var server: FaultDisk
        var devices: [FaultDisk]
    }

    init(
        _ scenario: Scenario, _ scene: Scene? = nil, victim: Victim = .device, opening: DiskDevice.Opening = .queue,
        seed: UInt64 = 1, traits: FaultDisk.Traits? = nil
    ) {
        (self.scenario, self.victim, self.seed) = (scenario, victim, seed)
        let traits = traits ?? opening.traits
        server = DiskServer(scenario.cast, on: scene?.server.copy() ?? FaultDisk(), board)
        let board = board
        devices = ["a", "b"].enumerated().map { index, name in
            DiskDevice(
                name, scenario.cast, on: scene?.devices[index].copy(traits) ?? FaultDisk(traits), opening, board,
                traits)
        }
    }

    subscript(_ name: String) -> DiskDevice { name == "b" ? devices[1] : devices[0] }

    /// The disk that fails: the server's, or that of device a.
    var disk: FaultDisk { victim == .server ? server.disk : devices[0].disk }

    func note(_ finding: String) { findings.append(finding) }

    /// Whether a power cut is ordered and has not come.
    private(set) var isArmed = false

    /// The power of the victim's disk goes off at the n-th call from now.
    func cutSoon(_ n: Int) {
        disk.fail(at: n, .powerCut)
        isArmed = true
    }

    /// Tries something again until it succeeds, as people do.
    static let attempts = 6

    // MARK: Playing

    func open() async throws {
        try await server.open()
        for device in devices { try await device.open() }
    }

    func close() {
        for device in devices { device.close() }
        server.close()
    }

    /// The disks as they are, for many runs from here.
    func scene() -> Scene {
        close()
        return Scene(server: server.disk.copy(), devices: devices.map { $0.disk.copy() })
    }

    /// Plays one step until it succeeds.
    func play(_ name: String, _ work: (Stage) async throws -> Void) async throws {
        for _ in 0..<Self.attempts {
            do { return try await work(self) } catch {
                recoveries += 1
                explain(error, in: name)
                await recover()
            }
        }
        throw Wedged(step: name)
    }

    struct Wedged: Error { var step: String }

    /// Only documented errors surface: SyncError from the engine, GRDB's where the app or a start asks the file itself.
    func explain(_ error: any Error, in step: String) {
        let isPlain =
            error is DatabaseError || error is StoreUnavailable || error is DiskServer.Closed
            || error is DiskDevice.Closed
        if error is SyncError || isPlain && !step.hasPrefix("sync") { return }
        note("\(step) threw \(type(of: error)): \(error)")
    }

    /// What people do then: make room, switch on again.
    func recover() async {
        isArmed = false
        if disk.failures > 0 { disk.endFaults() }
        for attempt in 0..<Self.attempts {
            do { return try await reopen() } catch {
                recoveries += 1
                if attempt == Self.attempts - 1 { note("cannot be opened: \(error)") }
            }
        }
    }

    private func reopen() async throws {
        seed &+= 1
        if server.disk.isOff {
            server.close()
            server.disk = server.disk.image(seed)
        }
        if server.server == nil { try await server.open() }
        for device in devices {
            if device.disk.isOff {
                device.close()
                device.disk = device.disk.image(seed, device.traits)
            }
            if device.engine == nil { try await device.open() }
        }
    }
}
