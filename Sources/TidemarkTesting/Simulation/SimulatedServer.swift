import Foundation
import TidemarkServer
import TidemarkWire

/// The server of a simulated world: one or more nodes, each the real engine, on one store.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct SimulatedServer {
    private var machine: Machine
    /// A copy of the machine, which goes on from where it was made whenever it is put in the other one's place.
    private var twin: Machine?
    /// What a node's operator has set last, as a number of which all settings follow.
    private var settings: [UInt64] = []
    private var hasQuotas = true
    private var generator: SplitMix64
    private(set) var failures = 0
    var clockOffset: Int64 = 0

    private struct Machine {
        var store: any SimulatedStore
        var life = ServerLife()
        var nodes: [SyncServer] = []
        var backup: StoreImage
    }

    let disk = ServerDisk()
    var store: any SimulatedStore { machine.store }
    /// What it has of attachments' bytes.
    var blobs: BlobLog? { (store as? MemoryStore)?.heldBlobs }
    var backup: StoreImage { machine.backup }
    var life: ServerLife { machine.life }

    /// - Parameter file: where the store is; `nil` for one in memory.
    init(seed: UInt64, file: FileStore.Place?) throws {
        generator = SplitMix64(seed: seed)
        let seed = generator.next()
        let store: any SimulatedStore = try file.map { try FileStore(at: $0, seed: seed) } ?? MemoryStore(seed: seed)
        machine = Machine(store: store, backup: try store.image())
    }

    /// Messages go to any of the nodes.
    func node(_ number: Int) -> SyncServer { machine.nodes[number % machine.nodes.count] }

    /// The store is opened anew: a new incarnation of the same history.
    mutating func open(in world: World) throws { try open(nil, in: world) }

    mutating func backUp() throws { machine.backup = try store.image() }
    mutating func restore(in world: World) throws { try open(machine.backup, in: world) }

    mutating func clone(in world: World) throws {
        try twin?.store.close()
        var copy = Machine(store: try store.cloned(seed: generator.next()), backup: machine.backup)
        copy.nodes = settings.map { node($0, on: copy, in: world) }
        twin = copy
    }

    /// Whether there is a copy whose turn it is now.
    mutating func exchange() -> Bool {
        guard let other = twin else { return false }
        (machine, twin) = (other, machine)
        return true
    }

    /// Nothing is asked of it any more.
    func close() throws {
        try store.close()
        try twin?.store.close()
    }

    private mutating func open(_ image: StoreImage?, in world: World) throws {
        machine.store = try store.reopened(from: image, seed: generator.next())
        machine.life = ServerLife()
        if settings.isEmpty { settings = Array(repeating: 0, count: world.plan.nodeCount) }
        machine.nodes = settings.map { node($0, on: machine, in: world) }
    }

    /// A node is stopped, and begins with other settings; the others go on.
    mutating func change(_ node: Int, to settings: UInt64, in world: World) {
        let place = node % machine.nodes.count
        self.settings[place] = settings
        machine.nodes[place] = self.node(settings, on: machine, in: world)
    }

    /// The operator gives scopes as much room as they need, in the end.
    mutating func liftQuotas(in world: World) {
        guard hasQuotas, settings.contains(where: { $0 > 0 }) else { return }
        hasQuotas = false
        machine.nodes = settings.map { node($0, on: machine, in: world) }
    }

    /// How long a device that is not heard of is remembered, in milliseconds.
    static let deviceRetention: Int64 = 7_200_000

    /// The operations that the strictest node takes in one request: as many as the sample apps make as a group, unless
    /// the schema adds to it.
    static let fewestOperations = 2

    private func node(_ settings: UInt64, on machine: Machine, in world: World) -> SyncServer {
        var configuration = SyncServer.Configuration()
        var limits = Limits()
        if !world.plan.hasWindow { configuration.window = .zero }
        configuration.retention = .seconds(3600)
        configuration.expiresEvents = true
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
            limits.pushBytes = choose([1, 300, limits.pushBytes])
            limits.windowBytes = choose([1, 300, limits.windowBytes])
            let rows = choose([4, 9, limits.scopeRows])
            if hasQuotas { limits.scopeRows = rows }
            if hasQuotas, world.app.hasFiles { limits.scopeBlobBytes = choose([4000, 8000, limits.scopeBlobBytes]) }
        }
        configuration.blobPieceBytes = World.pieceBytes
        configuration.begin = { [executor = world.executor] work in
            Task(executorPreference: executor) { await work() }
        }
        configuration.uptime = { .zero }
        configuration.offload = { $0() }
        configuration.now = { [unowned world] in
            Date(milliseconds: World.beginning + world.time + world.server.clockOffset)
        }
        machine.life.died = { [unowned world] point in world.noteDeath("server \(point)") }
        let blobs = world.app.hasFiles ? machine.store as? MemoryStore : nil
        let store: any ChangeStore =
            blobs.map { MortalBlobStore(store: $0, life: machine.life, disk: disk) }
            ?? MortalStore(machine.store, machine.life)
        return SyncServer(
            store: store, entities: world.app.entities, limits: limits,
            configuration: configuration, rules: world.app.rules)
    }

    mutating func fail(_ count: Int) { failures = count }

    mutating func takeFailure() -> Bool {
        guard failures > 0 else { return false }
        failures -= 1
        return true
    }
}
