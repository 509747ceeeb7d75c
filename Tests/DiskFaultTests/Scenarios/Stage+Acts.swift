import GRDB
import Tidemark

/// What only some stories need.
extension Stage {
    /// Makes a copy of the disks.
    func keep() { kept = Scene(server: server.disk.copy(), devices: devices.map { $0.disk.copy() }) }

    /// A disk is what it was then.
    func putBack(_ whose: Victim) async throws {
        guard let kept else { throw DiskServer.Closed() }
        switch whose {
        case .server:
            server.close()
            server.disk = kept.server.copy()
            try await server.open()
        case .device:
            devices[0].close()
            devices[0].disk = kept.devices[0].copy(devices[0].traits)
            try await devices[0].open()
        }
    }

    /// Device b goes on from the file of device a.
    func cloneDevice() async throws {
        devices[1].close()
        devices[1].disk = devices[0].disk.copy(devices[1].traits)
        try await devices[1].open()
    }

    /// Lets the engine of device a work by itself until everything is sent; room is made after a while.
    func runUntilSent() async throws {
        guard let engine = devices[0].engine, let writer = devices[0].writer else { throw DiskDevice.Closed() }
        let running = Task { try await engine.run() }
        let clock = ContinuousClock()
        let start = clock.now
        var isSent = false
        while !isSent, !disk.isOff, clock.now - start < .seconds(120) {
            if clock.now - start > .milliseconds(200) { disk.endFaults() }
            let left = try? await writer.read { db in
                try Int.fetchOne(
                    db,
                    sql: """
                        SELECT (SELECT count(*) FROM tidemark_shadow_task)
                          + (SELECT count(*) FROM tidemark_operation WHERE finished_at IS NULL)
                        """)
            }
            isSent = left == 0
            try await Task.sleep(for: .milliseconds(2))
        }
        running.cancel()
        _ = await running.result
        guard !disk.isOff else { throw DiskDevice.Closed() }
        if !isSent { note("something is unsent after 120 s: \(try await engine.status())") }
    }
}
