import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("Snapshots that several share, and the addresses of their pages (F4)")
struct SharedPinTests {
    private let key = [UInt8](repeating: 7, count: 32)
    private let epoch = Epoch(id: 1, start: 0)

    private func pin(_ horizon: Version, epoch id: Int64 = 1, walk: Int64 = 3) -> Pin {
        Pin(epoch: Epoch(id: id, start: 0), horizon: horizon, base: 0, walk: walk)
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
            let page = SharedPage(scope: scope, pin: pin(9, walk: .min), cursor: place, limit: 2000, expires: 5000)
            let token = page.token(key: key)
            #expect(SharedPage(token: token, key: key) == page)
            #expect(page.token(key: key) == token)
            #expect(SharedPage(token: token, key: [UInt8](repeating: 8, count: 32)) == nil)
            #expect(SharedPage(token: page.pin.token(scope: scope, key: key), key: key) == nil)
            #expect(Pin(token: token, scope: scope, key: key) == nil)
        }
    }

    @Test(
        "An address holds for half of the delay at least, and never for longer than it",
        arguments: [1000, 300_000] as [Int64])
    func delay(_ delay: Int64) {
        let pins = SharedPins(delay: delay, window: 900_000)
        var ends: Set<Int64> = []
        for now in stride(from: Int64(7_000_000), to: 7_000_000 + delay, by: 37) {
            let expires = pins.expiry(at: now)
            ends.insert(expires)
            #expect(pins.rest(until: expires, at: now) == expires - now)
            #expect(expires - now > delay / 2 - 1 && expires - now <= delay)
            #expect(pins.rest(until: expires, at: now + delay) == nil)
        }
        // So whoever comes at about the same time gets the same one.
        #expect(ends.count <= 3)
    }

    @Test("One of a longer delay, or of a clock that has gone back since, does not hold")
    func tooLong() {
        let pins = SharedPins(delay: 60_000, window: 900_000)
        #expect(pins.rest(until: 100_000, at: 40_000) == 60_000)
        #expect(pins.rest(until: 100_000, at: 39_999) == nil)
        #expect(pins.rest(until: .max, at: -5) == nil)
        // What is asked for beyond the limits counts as they do.
        #expect(SharedPins(delay: .max, window: 1).expiry(at: 0) == SharedPins.delays.upperBound)
        #expect(SharedPins(delay: -1, window: 1).expiry(at: 0) == SharedPins.delays.lowerBound)
    }

    @Test("Those who come soon after each other begin with one snapshot, later ones with another")
    func shared() {
        var pins = SharedPins(delay: 60_000, window: 900_000)
        #expect(pins.pin(pin(5), of: "s", in: history(5), at: 1000) == pin(5))
        #expect(pins.pin(pin(8), of: "s", in: history(8), at: 2000) == pin(5))
        #expect(pins.pin(pin(8), of: "t", in: history(8), at: 2000) == pin(8))
        #expect(pins.pin(pin(8), of: "s", in: history(8), at: 30_999) == pin(5))
        #expect(pins.pin(pin(8), of: "s", in: history(8), at: 31_000) == pin(8))
        // The clock has gone back.
        #expect(pins.pin(pin(9), of: "s", in: history(9), at: 500) == pin(9))
    }

    @Test("A snapshot is not shared that is of another history or order, or whose rows are not all kept")
    func unfit() {
        func next(_ present: Pin, _ history: ScopeHistory, window: Int64 = 900_000) -> Pin {
            var pins = SharedPins(delay: 60_000, window: window)
            _ = pins.pin(pin(5), of: "s", in: self.history(5), at: 1000)
            return pins.pin(present, of: "s", in: history, at: 1001)
        }
        #expect(next(pin(8), history(8, swept: 5, retained: 5)) == pin(5))
        #expect(next(pin(8), history(8, swept: 6)) == pin(8))
        #expect(next(pin(8), history(8, retained: 6)) == pin(8))
        #expect(next(pin(8, walk: 4), history(8)) == pin(8, walk: 4))
        #expect(next(pin(8, epoch: 2), history(8, epoch: 2)) == pin(8, epoch: 2))
        // The store was restored from a copy and has not come so far again.
        #expect(next(pin(4), history(4)) == pin(4))
        #expect(next(pin(8), history(8), window: 0) == pin(8))
    }

    @Test("Of more scopes than the limit nothing is remembered, and nothing grows")
    func bounded() {
        var pins = SharedPins(delay: 60_000, window: 900_000, scopeLimit: 3)
        for index in 0..<50 {
            let scope = Scope("s\(index)") ?? "s"
            #expect(pins.pin(pin(5), of: scope, in: history(5), at: 1000) == pin(5))
            #expect(pins.count <= 3)
        }
        // Those that are past make room for one without the others.
        var some = SharedPins(delay: 60_000, window: 900_000, scopeLimit: 2)
        _ = some.pin(pin(5), of: "a", in: history(5), at: 1000)
        _ = some.pin(pin(5), of: "b", in: history(5), at: 20_000)
        _ = some.pin(pin(6), of: "c", in: history(6), at: 40_000)
        #expect(some.pin(pin(6), of: "b", in: history(6), at: 40_000) == pin(5))
    }
}
