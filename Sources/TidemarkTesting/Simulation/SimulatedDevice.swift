import Foundation
import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

/// A device of a simulated world: a file, which outlives the app's processes, and what the world knows of it.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class SimulatedDevice {
    let number: Int
    let file: SimulatedFile
    let folder: URL
    var backup: Data?
    var folderBackup: FolderImage?
    var isDiskFull = false
    var process: SimulatedProcess?
    /// An extension of the app, or another program on its file.
    var second: SimulatedProcess?
    /// The engine that the file named last as the one that syncs it; `nil` where no second process was ever started.
    var holder: String?
    /// Whether its processes can find out that another one has ended, as on all systems but iOS.
    var seesProcesses: Bool { number.isMultiple(of: 2) }
    var clockOffset: Int64 = 0
    /// What it said of itself when it was asked last.
    var status: SyncStatus?

    init(_ number: Int, in world: World) throws {
        self.number = number
        folder = world.laboratory.folder(number)
        file = try world.laboratory.file(number, hasForeignKeys: world.plan.hasForeignKeys)
        if world.app.hasFiles { try replaceFolder(with: nil) }
        file.clock = { [unowned world] in world.wallClock(of: number) }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension World {
    /// The user who is signed in on a device.
    func user(of device: Int) -> Int { device % plan.userCount }

    func access(of device: Int, to scope: Scope) -> Access {
        let (user, scope) = (user(of: device), scope.parent)
        let level = grants[Grant(user: user, scope: scope)] ?? (app.scopes.contains(scope) ? .readWrite : .none)
        return Access(level, principal: "user\(user)")
    }

    /// Starts the app on a device, where it is not running.
    func start(_ device: SimulatedDevice) throws {
        guard device.process?.isAlive != true else { return }
        try migrate(device)
        let process = SimulatedProcess(device: device.number, seed: draw(), in: self)
        device.process = process
        try run(process, on: device, fileConfiguration(of: device))
    }

    /// Makes a process's engine, and has it run.
    func run(_ process: SimulatedProcess, on device: SimulatedDevice, _ files: AttachmentConfiguration?) throws {
        var configuration = SyncConfiguration()
        configuration.pageRange = plan.page...plan.page
        configuration.firstPage = plan.page
        configuration.snapshotRange = plan.page...plan.page
        configuration.firstSnapshotPage = plan.page
        configuration.operationLimit = plan.sendsEarly ? plan.page : 1 + plan.page * 2
        // Devices make few operations in a world: blocks of one and more make the blocks part of every world.
        configuration.leastHistoryBlock = 1 + plan.page % 3
        configuration.sendsEarly = plan.sendsEarly
        configuration.pollInterval = .seconds(10)
        // So that a world of some minutes has devices that were away for long.
        configuration.criticalFirstAfter = .seconds(50)
        let engine = try SyncEngine(
            for: device.file.queue, tables: app.tables, scopes: app.scopes, transport: process,
            configuration: configuration, attachments: files, onConflict: app.onConflict)
        process.engine = engine
        process.run()
        quiesce()
    }

    /// What the app does before it makes its engine. Returns whether that changed the schema.
    @discardableResult
    func migrate(_ device: SimulatedDevice) throws -> Bool {
        guard let atStart = app.atStart else { return false }
        serial += 1
        let isChanged = try device.file.queue.write { db in
            let before = try Int64.fetchOne(db, sql: "PRAGMA schema_version")
            try atStart(db)
            return try Int64.fetchOne(db, sql: "PRAGMA schema_version") != before
        }
        oracle?.acted(on: device.number)
        return isChanged
    }

    func kill(_ device: SimulatedDevice) {
        device.process?.kill()
        device.process = nil
        quiesce()
    }

    /// The device is off, or its file is about to become another one.
    func killAll(_ device: SimulatedDevice) {
        device.second?.kill()
        device.second = nil
        kill(device)
    }
}
