import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("Snapshots that several share, and the addresses of their pages (F4)")
struct SharedHandleTests {
    private let key = [UInt8](repeating: 7, count: 32)
    private let epoch = Epoch(id: 1, start: 0)

    private func handle(_ horizon: Version, epoch id: Int64 = 1, scan: Int64 = 3) -> SnapshotHandle {
        SnapshotHandle(epoch: Epoch(id: id, start: 0), horizon: horizon, base: 0, scan: scan)
    }

    private func history(
        _ head: Version, swept: Version = 0, retained: Version = 0, epoch id: Int64 = 1
    ) -> ScopeHistory {
        ScopeHistory(
            head: head, sweepFloor: swept, retentionFloor: retained,
            incarnations: [ScopeHistory.Incarnation(id: id, start: 0)])
    }

    @Test("An address comes back as it was, is the same for the same page, and holds with this key only")
    func token() throws {
        let record = try #require(RecordID(String(repeating: "r", count: 128)))
        let cursor = Cursor(entity: String(repeating: "e", count: 128), record: record)
        let scope = try #require(Scope(String(repeating: "s", count: 128)))
        for place in [nil, cursor] {
            let page = SharedPage(
                scope: scope, handle: handle(9, scan: .min), cursor: place, limit: 2000, expires: 5000)
            let token = page.token(key: key)
            #expect(SharedPage(token: token, key: key) == page)
            #expect(page.token(key: key) == token)
            #expect(SharedPage(token: token, key: [UInt8](repeating: 8, count: 32)) == nil)
            #expect(SharedPage(token: page.handle.token(scope: scope, key: key), key: key) == nil)
            #expect(SnapshotHandle(token: token, scope: scope, key: key) == nil)
        }
    }

    @Test(
        "An address holds for half of the delay at least, and never for longer than it",
        arguments: [1000, 300_000] as [Int64])
    func delay(_ delay: Int64) {
        let handles = SharedHandles(delay: delay, window: 900_000)
        var ends: Set<Int64> = []
        for now in stride(from: Int64(7_000_000), to: 7_000_000 + delay, by: 37) {
            let expires = handles.expiry(at: now)
            ends.insert(expires)
            #expect(handles.rest(until: expires, at: now) == expires - now)
            #expect(expires - now > delay / 2 - 1 && expires - now <= delay)
            #expect(handles.rest(until: expires, at: now + delay) == nil)
        }
        // So whoever comes at about the same time gets the same one.
        #expect(ends.count <= 3)
    }

    @Test("One of a longer delay, or of a clock that has gone back since, does not hold")
    func tooLong() {
        let handles = SharedHandles(delay: 60_000, window: 900_000)
        #expect(handles.rest(until: 100_000, at: 40_000) == 60_000)
        #expect(handles.rest(until: 100_000, at: 39_999) == nil)
        #expect(handles.rest(until: .max, at: -5) == nil)
        // A delay beyond a limit counts as the limit.
        #expect(SharedHandles(delay: .max, window: 1).expiry(at: 0) == SharedHandles.delays.upperBound)
        #expect(SharedHandles(delay: -1, window: 1).expiry(at: 0) == SharedHandles.delays.lowerBound)
    }

    @Test("Those who come soon after each other begin with one snapshot, later ones with another")
    func shared() {
        var handles = SharedHandles(delay: 60_000, window: 900_000)
        #expect(handles.handle(handle(5), of: "s", in: history(5), at: 1000) == handle(5))
        #expect(handles.handle(handle(8), of: "s", in: history(8), at: 2000) == handle(5))
        #expect(handles.handle(handle(8), of: "t", in: history(8), at: 2000) == handle(8))
        #expect(handles.handle(handle(8), of: "s", in: history(8), at: 30_999) == handle(5))
        #expect(handles.handle(handle(8), of: "s", in: history(8), at: 31_000) == handle(8))
        // The clock has gone back.
        #expect(handles.handle(handle(9), of: "s", in: history(9), at: 500) == handle(9))
    }

    @Test("A snapshot is not shared that is of another history or order, or whose rows are not all kept")
    func unfit() {
        func next(_ present: SnapshotHandle, _ history: ScopeHistory, window: Int64 = 900_000) -> SnapshotHandle {
            var handles = SharedHandles(delay: 60_000, window: window)
            _ = handles.handle(handle(5), of: "s", in: self.history(5), at: 1000)
            return handles.handle(present, of: "s", in: history, at: 1001)
        }
        #expect(next(handle(8), history(8, swept: 5, retained: 5)) == handle(5))
        #expect(next(handle(8), history(8, swept: 6)) == handle(8))
        #expect(next(handle(8), history(8, retained: 6)) == handle(8))
        #expect(next(handle(8, scan: 4), history(8)) == handle(8, scan: 4))
        #expect(next(handle(8, epoch: 2), history(8, epoch: 2)) == handle(8, epoch: 2))
        // The store was restored from a copy and has not come so far again.
        #expect(next(handle(4), history(4)) == handle(4))
        #expect(next(handle(8), history(8), window: 0) == handle(8))
    }

    @Test("Of more scopes than the limit nothing is remembered, and nothing grows")
    func bounded() {
        var handles = SharedHandles(delay: 60_000, window: 900_000, scopeLimit: 3)
        for index in 0..<50 {
            let scope = Scope("s\(index)") ?? "s"
            #expect(handles.handle(handle(5), of: scope, in: history(5), at: 1000) == handle(5))
            #expect(handles.count <= 3)
        }
        // Those that are past make room for one without the others.
        var some = SharedHandles(delay: 60_000, window: 900_000, scopeLimit: 2)
        _ = some.handle(handle(5), of: "a", in: history(5), at: 1000)
        _ = some.handle(handle(5), of: "b", in: history(5), at: 20_000)
        _ = some.handle(handle(6), of: "c", in: history(6), at: 40_000)
        #expect(some.handle(handle(6), of: "b", in: history(6), at: 40_000) == handle(5))
    }
}
