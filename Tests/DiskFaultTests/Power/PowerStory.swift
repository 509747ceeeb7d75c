import Foundation
import GRDB
import Tidemark
import TidemarkTesting
import TidemarkWire

/// Random edits on two devices while the power goes off again and again, and what may never be seen then.
struct PowerStory {
    var victim: Stage.Victim
    var opening = DiskDevice.Opening.pool
    /// Whether a deleted journal may come back, as on a disk that does not sync its directories.
    var losesNames = false
    /// Whether a commit that was told may be gone.
    var losesCommits = false

    /// What the stories of many seeds have come to.
    struct Tally: Sendable {
        var cuts = 0
        /// Commits that had been told and were gone.
        var lost = 0
        var findings: [String] = []
    }

    /// Each edit is also an entry that is only added to, and a row that is not synced: they tell what is there.
    static let cast = Cast.tasks(and: Cast.events).with {
        $0.schema += "CREATE TABLE told (n INTEGER PRIMARY KEY);"
        $0.entities.append(.state("task"))
    }

    func play(seed: UInt64, into tally: inout Tally) async {
        var generator = SplitMix64(seed: seed)
        let stage = Stage(
            Scenario(name: "power", cast: Self.cast, script: []), victim: victim, opening: opening, seed: seed &* 1000,
            traits: losesNames ? [] : nil)
        var diary = Diary()
        do {
            try await stage.open()
            for serial in 0..<50 {
                if !stage.isArmed { stage.cutSoon(.random(in: 1...700, using: &generator)) }
                let device = stage.devices[Int.random(in: 0..<2, using: &generator)]
                if generator.chance(60) {
                    await edit(device, serial, &generator, &diary)
                } else {
                    if generator.chance(20) { await device.wire.loseNext(generator.chance(50) ? .answer : .request) }
                    await sync(generator.chance(30) ? stage.devices : [device], stage)
                }
                guard stage.disk.isOff else { continue }
                tally.cuts += 1
                await stage.recover()
                try await look(stage, &diary, &tally)
            }
            stage.disk.endFaults()
            _ = try await stage.outcome()
            try check(stage, diary)
            for refusal in await stage.board.refusals { stage.note("history was taken for lost: \(refusal)") }
        } catch { stage.note("ended in \(error)") }
        stage.close()
        tally.findings += stage.findings.map { "seed \(seed): \($0)" }
    }

    /// What the app knows to have committed, in order, by device.
    struct Diary {
        var told: [String: [Int]] = [:]
        /// A commit whose outcome nobody knows.
        var open: [String: Int] = [:]
    }

    private func edit(
        _ device: DiskDevice, _ serial: Int, _ generator: inout SplitMix64, _ diary: inout Diary
    )
        async
    {
        let task = "t\(Int.random(in: 0..<5, using: &generator))"
        let change =
            generator.chance(15)
            ? "DELETE FROM task WHERE id = '\(task)';" : Scenarios.put(task, "\(device.name)-\(serial)")
        do {
            try await device.sql(
                """
                \(change) INSERT INTO told VALUES (\(serial));
                INSERT INTO audit VALUES ('e\(serial)', 'a', '\(device.name)');
                """)
            diary.told[device.name, default: []].append(serial)
        } catch { diary.open[device.name] = serial }
    }

    private func sync(_ devices: [DiskDevice], _ stage: Stage) async {
        let engines = devices.compactMap(\.engine)
        await withTaskGroup(of: String?.self) { group in
            for engine in engines {
                group.addTask {
                    do { try await engine.syncNow() } catch {
                        return error is SyncError ? nil : "a sync threw \(error)"
                    }
                    return nil
                }
            }
            for await finding in group.compactMap({ $0 }) { stage.note(finding) }
        }
    }

    /// Right behind a start: what was told is there, or at least nothing is missing in the middle (I1).
    private func look(_ stage: Stage, _ diary: inout Diary, _ tally: inout Tally) async throws {
        if victim == .server {
            for device in stage.devices { try await checkAcknowledged(device, stage) }
            return
        }
        let device = stage.devices[0]
        let found = try await device.rows("SELECT n FROM told").compactMap { Int($0) }.sorted()
        let told = diary.told[device.name] ?? []
        let possible = told + [diary.open[device.name]].compactMap { $0 }
        if found != Array(possible.prefix(found.count)) { stage.note("\(found) is no beginning of \(possible)") }
        if found.count < told.count {
            tally.lost += told.count - found.count
            if !losesCommits { stage.note("\(told) was told, \(found) is there") }
        }
        diary.told[device.name] = found
        diary.open[device.name] = nil
    }

    /// Whatever a device holds a verdict on is in the log.
    private func checkAcknowledged(_ device: DiskDevice, _ stage: Stage) async throws {
        let verdicts = try await device.rows(
            "SELECT entity, record, version FROM tidemark_operation WHERE state IN ('applied', 'merged')")
        let log = try ServerLog(stage.server.disk)
        for verdict in verdicts where !log.isTaken(verdict) { stage.note("\(verdict) was acknowledged and is gone") }
    }

    private func check(_ stage: Stage, _ diary: Diary) throws {
        let log = try ServerLog(stage.server.disk)
        for (record, titles) in log.titles {
            // A title that comes back after another was sent a second time.
            let changes = titles.enumerated().filter { $0 == 0 || titles[$0 - 1] != $1 }.map(\.element)
            if Set(changes).count < changes.count { stage.note("\(record) was written twice: \(changes)") }
        }
        for (device, told) in diary.told {
            let missing = told.filter { !log.entries.contains("e\($0)") }
            if !missing.isEmpty { stage.note("edits \(missing) of \(device) never reached the server") }
        }
    }
}
