import TidemarkServer

/// The server of a simulated world: the real engine on a store in memory.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct SimulatedServer {
    private(set) var store: MemoryStore
    private(set) var engine: SyncServer
    private var generator: SplitMix64
    private(set) var backup: MemoryStore.Backup
    private(set) var failures = 0
    var clockOffset: Int64 = 0

    init(seed: UInt64) {
        generator = SplitMix64(seed: seed)
        store = MemoryStore(seed: generator.next())
        backup = store.backup()
        engine = SyncServer(store: store)
    }

    /// The store is opened anew: a new incarnation of the same history.
    mutating func open(in world: World) { open(store.backup(), in: world) }

    mutating func backUp() { backup = store.backup() }
    mutating func restore(in world: World) { open(backup, in: world) }

    private mutating func open(_ backup: MemoryStore.Backup, in world: World) {
        store = MemoryStore(backup, seed: generator.next())
        var configuration = SyncServer.Configuration()
        if !world.plan.hasWindow { configuration.window = .zero }
        configuration.retention = .seconds(3600)
        configuration.deviceRetention = .seconds(7200)
        let random = SeededSource(seed: generator.next())
        configuration.random = { random.next() }
        configuration.now = { [unowned world] in World.beginning + world.time + world.server.clockOffset }
        engine = SyncServer(
            store: store, entities: world.app.entities, configuration: configuration, rules: world.app.rules)
    }

    mutating func fail(_ count: Int) { failures = count }

    mutating func takeFailure() -> Bool {
        guard failures > 0 else { return false }
        failures -= 1
        return true
    }
}

/// A generator behind a closure. Unchecked because everything of a world happens on one thread.
final class SeededSource: @unchecked Sendable {
    private var generator: SplitMix64
    init(seed: UInt64) { generator = SplitMix64(seed: seed) }
    func next() -> UInt64 { generator.next() }
}
