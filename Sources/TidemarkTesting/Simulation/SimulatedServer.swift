import TidemarkServer

/// The server of a simulated world: one or more nodes, each the real engine, on one store.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct SimulatedServer {
    private(set) var store: any SimulatedStore
    private(set) var nodes: [SyncServer] = []
    /// What a node's operator has set last, as a number of which all settings follow.
    private var settings: [UInt64] = []
    private var generator: SplitMix64
    private(set) var backup: StoreImage
    private(set) var failures = 0
    var clockOffset: Int64 = 0

    /// - Parameter file: where the store is; `nil` for one in memory.
    init(seed: UInt64, file: FileStore.Place?) throws {
        generator = SplitMix64(seed: seed)
        let seed = generator.next()
        store = try file.map { try FileStore(at: $0, seed: seed) } ?? MemoryStore(seed: seed)
        backup = try store.image()
    }

    /// Messages go to any of the nodes.
    func node(_ number: Int) -> SyncServer { nodes[number % nodes.count] }

    /// The store is opened anew: a new incarnation of the same history.
    mutating func open(in world: World) throws { try open(nil, in: world) }

    mutating func backUp() throws { backup = try store.image() }
    mutating func restore(in world: World) throws { try open(backup, in: world) }

    /// Nothing is asked of it any more.
    func close() throws { try store.close() }

    private mutating func open(_ image: StoreImage?, in world: World) throws {
        store = try store.reopened(from: image, seed: generator.next())
        if settings.isEmpty { settings = Array(repeating: 0, count: world.plan.nodeCount) }
        nodes = settings.map { node($0, in: world) }
    }

    /// A node is stopped, and begins with other settings; the others go on.
    mutating func change(_ node: Int, to settings: UInt64, in world: World) {
        let place = node % nodes.count
        self.settings[place] = settings
        nodes[place] = self.node(settings, in: world)
    }

    /// After which a device that was not heard of is forgotten, in milliseconds.
    static let deviceRetention: Int64 = 7_200_000

    /// As many as the sample apps make as a group, unless the schema adds to it.
    static let fewestOperations = 2

    private mutating func node(_ settings: UInt64, in world: World) -> SyncServer {
        var configuration = SyncServer.Configuration()
        var limits = Limits()
        if !world.plan.hasWindow { configuration.window = .zero }
        configuration.retention = .seconds(3600)
        configuration.deviceRetention = .milliseconds(Self.deviceRetention)
        if settings > 0 {
            var choices = SplitMix64(seed: settings)
            func choose<Setting>(_ options: [Setting]) -> Setting {
                options[Int(choices.next() % UInt64(options.count))]
            }
            configuration.window = choose([.zero, .seconds(1), .seconds(900)])
            configuration.retention = choose([.seconds(60), .seconds(3600), nil])
            configuration.sweepLimit = choose([1, 3, 10_000])
            limits.operations = choose([Self.fewestOperations, 3, limits.operations])
            limits.pageBytes = choose([1, 300, limits.pageBytes])
            limits.resultBytes = choose([1, 300, limits.resultBytes])
        }
        let random = SeededSource(seed: generator.next())
        configuration.random = { random.next() }
        configuration.now = { [unowned world] in World.beginning + world.time + world.server.clockOffset }
        return SyncServer(
            store: store, entities: world.app.entities, limits: limits, configuration: configuration,
            rules: world.app.rules)
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
