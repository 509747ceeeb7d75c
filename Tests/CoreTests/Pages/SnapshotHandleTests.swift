import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("Scans in key order")
struct SnapshotHandleTests {
    private let key = [UInt8](repeating: 7, count: 32)
    private let epoch = Epoch(id: 1, start: 0)

    private func check(_ handle: SnapshotHandle, head: Version = 9, floor: Version = 0) -> Problem? {
        let history = ScopeHistory(
            head: head, sweepFloor: 0, retentionFloor: floor,
            incarnations: [ScopeHistory.Incarnation(id: 1, start: 0)])
        do throws(Problem) {
            try handle.check(in: history)
            return nil
        } catch { return error }
    }

    @Test("come back from their tokens")
    func token() {
        let handle = SnapshotHandle(epoch: epoch, horizon: 9, base: 4, scan: .min)
        #expect(SnapshotHandle(token: handle.token(scope: "s", key: key), scope: "s", key: key) == handle)
        #expect(SnapshotHandle(token: handle.token(scope: "s", key: key), scope: "t", key: key) == nil)
        #expect(SnapshotHandle(token: handle.checkpoint.token(scope: "s", key: key), scope: "s", key: key) == nil)
    }

    @Test("A snapshot is held against the retention floor by its horizon, a delta by its base")
    func floor() {
        let snapshot = SnapshotHandle(epoch: epoch, horizon: 9, base: 0, scan: 0)
        #expect(check(snapshot, head: 20, floor: 9) == nil)
        #expect(check(snapshot, head: 20, floor: 10)?.code == .snapshotExpired)
        let delta = SnapshotHandle(epoch: epoch, horizon: 9, base: 4, scan: 0)
        #expect(check(delta, floor: 4) == nil)
        #expect(check(delta, floor: 5)?.code == .snapshotExpired)
    }

    @Test("One whose history is lost hears of that, and not of a snapshot that expired")
    func lost() {
        #expect(check(SnapshotHandle(epoch: epoch, horizon: 10, base: 0, scan: 0))?.reason == .ahead)
        #expect(check(SnapshotHandle(epoch: Epoch(id: 2, start: 0), horizon: 5, base: 0, scan: 0))?.reason == .epoch)
    }
}
