import GRDB
import Tidemark
import TidemarkCore
import TidemarkServer
import TidemarkWire

/// Watches a world and holds what it sees against the guarantees (Documentation/Architecture.md). It knows the devices'
/// tables and the server's log, and what apps wrote; of the engines' ways it knows nothing.
///
/// What is checked where: the log and what is answered from it in `Oracle+Server`, the rows of devices in
/// `Oracle+Rows`, what became of each edit in `Oracle+Writes`, and in `Oracle+End` what must hold when the faults are
/// over.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class Oracle {
    unowned let world: World
    let tables: [String: OracleTable]
    let inOrder: [OracleTable]
    /// Entities of which an operator's own rule decides: only that rule can say what becomes of an edit.
    let ruled: Set<String>
    var scopes: [Scope: OracleScope] = [:]
    var devices: [OracleDevice]
    private var backups: [OracleDevice?]
    private var touched: Set<Int> = []
    private var changeCounts: [Int]
    /// What the devices had written when they counted their rows last.
    var countedChanges: [Int]
    /// Whether they count their rows after each step: that takes longer than most steps.
    let countsRows: Bool
    /// The first thing that was wrong: the others may follow from it.
    private(set) var violation: Violation?

    /// What the server calls records whose ids it makes.
    var names = OracleNames()
    /// `nil` where the app has no attachments.
    var files: OracleFiles?
    /// Whether a device's file was put back or copied. In the hands of two users its temporary ids stand for two
    /// records each, of which nobody can tell here what an edit became.
    var hasSharedNames = false

    var deletes = OracleDeletes()
    var verdicts = OracleVerdicts()

    /// Records that were written in files which are no more.
    var lost: Set<OracleKey> = []

    /// How often a value may come into a cell of the log, and how often it did.
    var allowed: [OracleCell: Int] = [:]
    var entered: [OracleCell: Int] = [:]
    /// How often a value came to another file with a copy: each of the files may replay it to a server that lost
    /// it.
    var copied: [OracleCell: Int] = [:]

    init(of world: World) {
        self.world = world
        inOrder = world.laboratory.oracleTables
        ruled = Set(world.app.rules.map(\.entity))
        tables = Dictionary(uniqueKeysWithValues: inOrder.map { ($0.name, $0) })
        for scope in world.app.parts { scopes[scope] = OracleScope() }
        // The first device that sends them makes them, and nobody else does.
        for table in inOrder {
            for (key, cells) in table.seeds {
                deletes.noteSeed(key)
                for (column, cell) in zip(table.data, cells) {
                    allowed[OracleCell(key: key, column: column, value: cell), default: 0] += 1
                }
            }
        }
        devices = world.devices.map { _ in OracleDevice() }
        backups = devices.map { _ in nil }
        if world.app.hasFiles { files = OracleFiles(devices: devices.count) }
        changeCounts = devices.map { _ in -1 }
        countedChanges = changeCounts
        countsRows = !world.app.migrating.isEmpty || world.plan.seed.isMultiple(of: 8)
    }

    /// Throws what was found wrong since the world began.
    func report() throws {
        if let violation { throw violation }
    }

    /// Runs checks, and keeps the first violation until the step ends: they run in the midst of the world's work.
    func check(_ body: () throws -> Void) {
        guard violation == nil else { return }
        do { try body() } catch {
            violation = error as? Violation ?? Violation("oracle", "\(error)")
            world.note("VIOLATION \(violation.map(String.init(describing:)) ?? "")")
        }
    }

    // MARK: What the world tells it

    func touch(_ device: Int) { touched.insert(device) }

    /// Looks at all devices that have written since.
    func look() {
        guard !touched.isEmpty else { return }
        for device in touched.sorted() {
            check {
                try world.devices[device].file.queue.unsafeRead { db in
                    guard db.totalChangesCount != changeCounts[device] else { return }
                    changeCounts[device] = db.totalChangesCount
                    try look(device, db)
                }
            }
        }
        touched = []
    }

    /// The app has done something in a transaction, and nobody else since the last look.
    func acted(on device: Int) {
        check {
            try world.devices[device].file.queue.unsafeRead { db in
                let former = devices[device].sight
                changeCounts[device] = db.totalChangesCount
                var sight = try OracleDevice.Sight(db, inOrder, names, after: former)
                try noteWrites(from: former, to: &sight, device, db)
                let places = places(on: device)
                try look(device, db, sight)
                noteNamed(by: device, since: places)
            }
        }
    }

    private func look(_ device: Int, _ db: Database, _ seen: OracleDevice.Sight? = nil) throws {
        let former = devices[device].sight
        var sight = try seen ?? OracleDevice.Sight(db, inOrder, names, after: former)
        noteFound(device, &sight, since: former, byAct: seen != nil)
        devices[device].sight = sight
        forgetUnnamed(on: device)
        if former.quarantined != sight.quarantined {
            world.note("quarantined on \(device): \(sight.quarantined.sorted())")
        }
        for key in sight.quarantined where tables[key.entity]?.place != nil { devices[device].scattered.insert(key) }
        if seen == nil, former.odd != sight.odd {
            throw Violation("I13", "device \(device) takes rows that cannot travel from \(former.odd) to \(sight.odd)")
        }
        try noteLoss(device, db, since: former)
        try checkScopes(device, since: former)
        noteFilled(device, since: former)
        try checkRows(device)
        try checkWrites(device, db, since: former)
        try checkRefusals(device, db)
        try checkInvariants(world.app.invariants, db, "device \(device)")
    }

    /// Checks the app's invariants; one that cannot be asked does not hold.
    func checkInvariants(_ invariants: [SimulatedApp.Invariant], _ db: Database, _ place: String) throws {
        for invariant in invariants {
            do {
                guard try !invariant.holds(db) else { continue }
                throw Violation("invariant", "\(place): \(invariant.name)")
            } catch let error as DatabaseError {
                throw Violation("invariant", "\(place): \(invariant.name): \(error)")
            }
        }
    }

    func backedUp(_ device: Int) {
        backups[device] = devices[device]
        if let owed = files?.owed[device] { files?.backups[device] = owed }
    }

    func restored(_ device: Int, _ fate: SimulatedDevice.FolderFate) {
        guard let backup = backups[device] else { return }
        if let files { fileReplaced(device, fate, with: files.backups[device]) }
        replace(device, with: backup)
    }

    func cloned(_ device: Int, to other: Int, _ fate: SimulatedDevice.FolderFate) {
        if let files { fileReplaced(other, fate, with: fate == .comesAlong ? files.owed[device] : [:]) }
        // The server knows an operation by its user too: of another one it is another operation.
        if world.user(of: device) != world.user(of: other) { allowed = allowed.mapValues { $0 + 1 } }
        replace(other, with: devices[device])
        noteCopied(device)
    }

    /// Whether acts on a device that lost something had a part in a record.
    func isLost(_ key: OracleKey) -> Bool {
        // Each device had what comes with the app, and whichever was first has sent it.
        lost.contains(key) || !world.lostDevices.isEmpty && tables[key.entity]?.hasSeed(key) ?? false
            || world.lostDevices.contains { devices[$0].written.contains { $0.key == key } }
    }

    /// An edit that was not sealed yet may be sent by each of the files that hold it.
    private func replace(_ device: Int, with known: OracleDevice) {
        hasSharedNames = hasSharedNames || world.app.entities.contains { $0.ids == .server }
        lost.formUnion(devices[device].written.map(\.key))
        var known = known
        known.rename(names)
        devices[device] = known
        changeCounts[device] = -1
        touched.insert(device)
        noteCopied(device)
        for (key, writes) in known.writes {
            for (column, write) in writes {
                allowed[OracleCell(key: key, column: column, value: write.value), default: 0] += 1
            }
        }
        var values = known.written
        for (key, cells) in known.sight.rows {
            guard let table = tables[key.entity] else { continue }
            for (column, value) in zip(table.data, cells) {
                values.insert(OracleCell(key: key, column: column, value: value))
            }
        }
        for value in values { copied[value, default: 0] += 1 }
    }

    /// Marks the writes that are sealed in a file which was copied. Only one of the files that hold a sealed edit hears
    /// its verdict; of an edit that was not sealed yet, each does.
    private func noteCopied(_ device: Int) {
        let sealed = SealedEdit.all(in: world.devices[device], names)
        for (key, writes) in devices[device].writes {
            for column in writes.keys where sealed[key]?.contains(where: { $0.touches(column) }) ?? false {
                devices[device].writes[key]?[column]?.isCopied = true
            }
        }
    }
}

/// A value in a place.
struct OracleCell: Hashable {
    var key: OracleKey
    var column: String
    var value: Value?

    /// That the record is no more.
    static func delete(_ key: OracleKey) -> OracleCell { OracleCell(key: key, column: "", value: nil) }
}
