import Foundation
import GRDB
import Tidemark
import TidemarkCore
import TidemarkWire

/// One running app on a simulated device: an engine with a clock, chance and a file of the world's making. It can be
/// killed at any moment; from then on nothing of it reaches the file or the wire.
///
/// Unchecked because everything of a world happens on the world's own thread.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class SimulatedProcess: Environment, Transport, @unchecked Sendable {
    /// Thrown in the place of all that a dead process still tries to do.
    struct Killed: Error {}

    let device: Int
    private let name: String
    private unowned let world: World
    private var generator: SplitMix64
    private var uuids = UUIDv7()
    private(set) var isAlive = true
    /// Uses of the file and requests until it dies; odd: just after the last one took effect, even: just before.
    var remaining: Int?
    /// What it does last before it dies, or does not do any more.
    var last: (point: String, isAfter: Bool)?
    var engine: SyncEngine?
    var tasks: [Task<Void, Never>] = []
    /// Holds its transactions against the records' machine, where that is wanted.
    private let watch: RecordWatch?
    /// The task in which the engine runs.
    private var running: Task<Void, Never>?
    /// The one before, which ends once a sync that somebody waits for is over.
    private var former: Task<Void, Never>?
    /// Whether an answer that it has got is not in the file yet.
    var hasAnswer = false
    /// How often the user waits for a sync that was asked for.
    var openSyncs = 0

    /// - Parameter isSecond: whether it is not the app, but an extension of it, say.
    init(device: Int, isSecond: Bool = false, seed: UInt64, in world: World) {
        (self.device, name) = (device, isSecond ? "device-\(device)-second" : "device-\(device)")
        self.world = world
        watch = world.laboratory.audit.map { RecordWatch($0) }
        generator = SplitMix64(seed: seed)
    }

    /// The process is gone, at once.
    func kill() {
        guard isAlive else { return }
        isAlive = false
        world.note("kill \(name)")
        for task in tasks { task.cancel() }
        tasks = []
        // It holds this process as its transport.
        engine = nil
    }

    /// Runs something of the app's or the engine's in this process, to where it waits for something outside.
    func start(_ work: @escaping @Sendable () async -> Void) {
        Dependencies.$current.withValue(self) {
            tasks.append(Task(executorPreference: world.executor) { await work() })
        }
    }

    /// Its engine runs, where it does not already.
    func run() {
        guard running == nil, let engine else { return }
        let former = former
        start { [self] in
            await former?.value
            do { try await engine.run() } catch { world.note("run ended: \(error)") }
        }
        running = tasks.last
    }

    /// It goes on without syncing, as one does whose task was cancelled.
    func endRunning() {
        running?.cancel()
        (former, running) = (running ?? former, nil)
    }

    /// Somebody asks for a sync, and waits for it.
    func sync() {
        guard let engine else { return }
        openSyncs += 1
        start { [self] in
            do { try await engine.syncNow() } catch { world.note("\(device) could not sync: \(error)") }
            openSyncs -= 1
        }
    }

    private func live() throws {
        guard isAlive else { throw Killed() }
    }

    // MARK: Environment

    var wallClock: Int64 { world.wallClock(of: device) }
    var uptime: Instant { Instant(milliseconds: world.time) }
    func random() -> UInt64 { generator.next() }
    func nextUUID() -> [UInt8] { uuids.next(at: wallClock, random: (generator.next(), generator.next())) }

    func sleep(for duration: Duration) async throws {
        try live()
        try await world.sleep(device, until: world.time + max(0, duration.milliseconds))
    }

    func use<Result: Sendable>(
        _ writer: any DatabaseWriter, _ access: FileAccess, at point: WritePoint?,
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        if access != .read { world.oracle?.touch(device) }
        if point == .apply || point == .page || point == .lossProbe { hasAnswer = false }
        guard let watch, let point, access == .write else {
            return try perform(point?.rawValue) { try Self.now(writer, access, body) }
        }
        return try perform(point.rawValue) {
            try Self.now(writer, access) { db in try watch.around(db, at: point, body) }
        }
    }

    /// At once, on this thread: a hop to another one would come back at a moment of its own.
    private static func now<Result>(
        _ writer: any DatabaseWriter, _ access: FileAccess, _ body: (Database) throws -> Result
    ) throws -> Result {
        switch access {
        case .read: try writer.unsafeRead { db in try db.consistently(body) }
        case .write: try writer.writeWithoutTransaction(body)
        }
    }

    /// - Parameter point: its name; `nil` for what leaves no trace outside the process.
    private func perform<Result>(_ point: String?, _ body: () throws -> Result) throws -> Result {
        try live()
        var isAfter: Bool?
        if let left = remaining {
            remaining = left - 2
            isAfter = left >= 2 ? nil : left == 1
        }
        if let last, last.point == point { isAfter = last.isAfter }
        guard let isAfter else { return try body() }
        if isAfter { _ = try? body() }
        world.noteDeath("app \(isAfter ? "after" : "before") \(point ?? "a read")")
        kill()
        throw Killed()
    }

    func watchEdits(
        of writer: any DatabaseWriter, _ notify: @escaping @Sendable () -> Void
    ) -> AnyDatabaseCancellable {
        // The file has one connection for both, and its edits are announced to the app alone.
        guard world.devices[device].process === self else { return AnyDatabaseCancellable {} }
        return world.devices[device].file.watchEdits { [weak self] in if self?.isAlive == true { notify() } }
    }

    /// In the same task: a world's file takes what a cancelled one does, and a task of its own would leave the world's
    /// thread.
    func uncancelled<Result: Sendable>(
        _ work: @escaping @Sendable () async throws -> Result
    ) async throws -> Result { try await work() }

    func engineName() -> String { name }

    /// A copied file may name a process of the device that it comes from. That one is not here.
    func mayBeThere(_ engine: String, isFirst _: Bool) -> Bool {
        let device = world.devices[device]
        let others = [device.process, device.second].compactMap(\.self).filter(\.isAlive)
        return engine == name || others.contains { $0.name == engine } || !device.seesProcesses && device.isOwn(engine)
    }

    var fsyncsFiles: Bool { false }

    var firstCaptureKeys: Int { 2 }

    func begin(_ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        let task = Task(executorPreference: world.executor) { await work() }
        if isAlive { tasks.append(task) } else { task.cancel() }
        return task
    }

    func use<Result>(_ file: URL, for use: FileUse, _ body: () throws -> Result) throws -> Result {
        if use != .fileRemove, world.devices[device].isDiskFull { throw POSIXError(.ENOSPC) }
        return try perform(use.rawValue) {
            let result = try body()
            // No two are written at one moment, as on a real clock.
            let moment = Double(wallClock) / 1000 + Double(world.nextNumber() % 1000) * 1e-6
            let times = [FileAttributeKey.modificationDate: Date(timeIntervalSince1970: moment)]
            if use == .fileWrite { try FileManager.default.setAttributes(times, ofItemAtPath: file.path) }
            return result
        }
    }

    // MARK: Transport

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        try perform(request.carriesBytes ? KillPoint.file : request.path) {}
        guard ["/sync", "/sync/snapshot"].contains(request.path) else {
            return try await world.send(request, from: self)
        }
        if hasAnswer { world.earlyRequests += 1 }
        hasAnswer = false
        return try await world.send(request, from: self)
    }
}
