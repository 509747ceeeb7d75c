import GRDB
import Tidemark
import TidemarkServer

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension World {
    /// Does one thing, and lets everybody go on to where they wait.
    func perform(_ step: Step) throws {
        note(step.line)
        try askWanted()
        switch step {
        case .edit(let device, let act, let choice):
            let device = devices[device % devices.count]
            try edit(device, act, choice, by: device.process)
        case .sync(let device):
            devices[device % devices.count].process?.sync()
        case .pass(let place, let fate): pass(place, fate)
        case .passFile(let place, let fate):
            let places = messages.indices.filter { messages[$0].isFile }
            if !places.isEmpty { pass(places[place % places.count], fate) }
        case .flow: flow()
        case .wait(let milliseconds): pass(milliseconds)
        case .kill(let device, let after):
            let device = devices[device % devices.count]
            if after == 0 { kill(device) } else { device.process?.remaining = after }
        case .killAt(let device, let point, let isAfter):
            devices[device % devices.count].process?.last = (point, isAfter)
        case .start(let device): try start(devices[device % devices.count])
        case .backUp(let device):
            let device = devices[device % devices.count]
            device.backup = try device.file.contents()
            if app.hasFiles { device.folderBackup = device.folderImage() }
            oracle?.backedUp(device.number)
        case .restore(let device): try restore(devices[device % devices.count])
        case .clone(let device, let other):
            try clone(devices[device % devices.count], to: devices[other % devices.count])
        case .setClock(let device, let offset):
            let device = devices[device % devices.count]
            // Its finished operations are old at once, and are not kept any longer.
            if offset - device.clockOffset >= Self.week { lostDevices.insert(device.number) }
            device.clockOffset = offset
            wrongClocks.insert(device.number)
        case .grant(let user, let scope, let level):
            let user = user % plan.userCount
            if level == .none { lostDevices.formUnion(devices.indices.filter { self.user(of: $0) == user }) }
            grants[Grant(user: user, scope: app.scopes[scope % app.scopes.count])] = level
        case .file(let device, let act, let choice):
            try perform(act, on: devices[device % devices.count], choice)
        case .disk(let device, let isFull): devices[device % devices.count].isDiskFull = isFull
        case .second(let device, let act): try perform(act, on: devices[device % devices.count])
        case .remedy(let device, let remedy): try ask(remedy, of: devices[device % devices.count])
        case .server(let step): try perform(step)
        }
        quiesce()
        if case .edit(let device, _, _) = step, !app.migrating.isEmpty { askStatus(of: device % devices.count) }
        try lookForHandovers()
        oracle?.checkCounts()
        oracle?.checkFiles()
        try oracle?.report()
    }

    /// A screen shows how things stand, after most edits.
    private func askStatus(of number: Int) {
        guard serial % 4 != 0, let process = devices[number].process, process.isAlive, let engine = process.engine
        else {
            return
        }
        devices[number].status = nil
        process.start { [self] in devices[number].status = try? await engine.status() }
        quiesce()
        if let status = devices[number].status { oracle?.checkStatus(status, on: number) }
    }

    /// How long devices keep what they have finished, in milliseconds.
    static let week: Int64 = 7 * 86_400_000

    private func perform(_ step: Step.ServerStep) throws {
        switch step {
        case .restart: try restartServer()
        case .kill(let after): server.life.remaining = after
        case .backUp: try server.backUp()
        case .restore:
            oracle?.checkFiles()
            let before = oracle?.losses
            try server.restore(in: self)
            oracle?.serverOpened()
            oracle?.filesReplaced(before: before)
        case .clone:
            try server.clone(in: self)
            oracle?.serverCloned()
        case .exchange:
            oracle?.checkFiles()
            let before = oracle?.losses
            guard server.exchange() else { return }
            oracle?.serverExchanged()
            oracle?.filesReplaced(before: before, isBack: true)
        case .sweep: work { engine in try await engine.sweep() }
        case .compact(let milliseconds):
            // Who takes the clock at its word has looked at it.
            let isRight = !hasWrongServerClock
            work { engine in try await engine.compact(elapsed: .milliseconds(milliseconds), trustingClock: isRight) }
            oracle?.checkFiles()
            oracle?.collected()
        case .fail(let count): server.fail(count)
        case .change(let node, let settings): server.change(node, to: settings, in: self)
        case .disk(let isFull): server.disk.isFull = isFull
        case .setClock(let offset):
            server.clockOffset = offset
            hasWrongServerClock = true
        }
    }

    func work<Result>(_ body: @escaping @Sendable (SyncServer) async throws -> Result) {
        let engine = server.node(serial)
        Task(executorPreference: executor) {
            do { _ = try await body(engine) } catch {
                if self.server.life.isOver { return self.serverDied() }
                self.oracle?.serverFailed(error)
            }
        }
        quiesce()
    }

    private func restartServer() throws {
        try server.open(in: self)
        oracle?.serverOpened()
    }

    /// Starts the server again, with all that it had committed.
    func serverDied() {
        oracle?.readLog()
        oracle?.check { try restartServer() }
    }

    func edit(_ device: SimulatedDevice, _ name: String, _ choice: UInt64, by process: SimulatedProcess?) throws {
        guard let act = app.acts.first(where: { $0.name == name }) else {
            throw Violation("script", "the app has no act \(name)")
        }
        guard let process, process.isAlive else { return }
        serial += 1
        var choices = Choices(seed: choice, serial: serial, device: device.number)
        if let adding = act.adding { return add(adding, act, device, choices) }
        if act.isGroup, let engine = process.engine {
            let (drawn, number) = (choices, device.number)
            process.start {
                do {
                    try await engine.atomically { db in
                        var choices = drawn
                        try act.perform(db, &choices)
                    }
                } catch {
                    if !Self.isForgiven(error) { self.oracle?.check { throw Violation("act", "\(name): \(error)") } }
                }
                self.oracle?.acted(on: number)
            }
            return quiesce()
        }
        device.file.isForeign = process === device.second
        defer { device.file.isForeign = false }
        do {
            try Dependencies.$current.withValue(process) {
                try device.file.queue.write { db in try act.perform(db, &choices) }
            }
        } catch {
            guard Self.isForgiven(error) else { throw Violation("act", "\(name): \(error)") }
        }
        oracle?.acted(on: device.number)
        quiesce()
    }

    /// Whether the error is the app's own: its schema refuses a write, a group cannot hold it, or a killed app left it.
    /// A constraint of the library's tables is none: it would keep the app from its own rows.
    static func isForgiven(_ error: any Error) -> Bool {
        if let error = error as? DatabaseError {
            return error.resultCode == .SQLITE_CONSTRAINT && error.message?.contains("tidemark_") != true
        }
        if let error = error as? SyncError { return [.groupImpossible, .folderFailed].contains(error.code) }
        return error is SimulatedProcess.Killed || error is CancellationError
    }

    private func restore(_ device: SimulatedDevice) throws {
        guard let backup = device.backup else { return }
        killAll(device)
        try device.file.replace(with: backup)
        let fate = try replaceFolder(of: device, with: device.folderBackup)
        lostDevices.insert(device.number)
        oracle?.restored(device.number, fate)
        try start(device)
    }

    private func clone(_ device: SimulatedDevice, to other: SimulatedDevice) throws {
        guard device !== other else { return }
        killAll(other)
        try other.file.replace(with: device.file.contents())
        let fate = try replaceFolder(of: other, with: app.hasFiles ? device.folderImage() : nil)
        lostDevices.formUnion([device.number, other.number])
        oracle?.cloned(device.number, to: other.number, fate)
        try start(other)
    }

    /// No world of sound devices sends so many without time passing.
    private static let burstLimit = 2000

    /// All messages arrive, and those that follow from them.
    func flow() {
        for _ in 0..<Self.burstLimit where !messages.isEmpty { pass(0, .arrives) }
        guard !messages.isEmpty else { return }
        oracle?.check { throw Violation("I10", "devices sent \(Self.burstLimit) messages without waiting") }
    }
}
