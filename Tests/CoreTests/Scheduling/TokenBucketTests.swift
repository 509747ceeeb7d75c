import Testing

@testable import TidemarkCore

@Suite("So much in a time, and for a while more (I14)")
struct TokenBucketTests {
    private let rate = TokenBucket.Rate(count: 2, milliseconds: 1000, burst: 4)
    private let start = Instant(milliseconds: 5_000)

    @Test("A bucket that has rested gives its burst at once, and then as much as comes back")
    func burst() {
        var bucket = TokenBucket(full: rate, at: start)
        for _ in 0..<4 { #expect(bucket.take(rate, at: start) == nil) }
        #expect(bucket.take(rate, at: start) == 500)
        #expect(bucket.take(rate, at: start + 499) == 1)
        #expect(bucket.take(rate, at: start + 500) == nil)
        #expect(bucket.take(rate, at: start + 500) == 500)
        #expect(!bucket.isFull(rate, at: start + 2_499))
        #expect(bucket.isFull(rate, at: start + 2_500))
    }

    @Test("Asking when there is nothing costs nothing")
    func refused() {
        var bucket = TokenBucket(full: rate, at: start)
        for _ in 0..<4 { _ = bucket.take(rate, at: start) }
        for moment in 0..<500 { #expect(bucket.take(rate, at: start + Int64(moment)) != nil) }
        #expect(bucket.take(rate, at: start + 500) == nil)
    }

    @Test("A clock that goes back, or far ahead, neither gives more than the burst nor takes any")
    func clock() {
        var bucket = TokenBucket(full: rate, at: start)
        for _ in 0..<3 { _ = bucket.take(rate, at: start) }
        #expect(bucket.take(rate, at: Instant(milliseconds: 0)) == nil)
        #expect(bucket.take(rate, at: Instant(milliseconds: 0)) == 500)
        for _ in 0..<4 { #expect(bucket.take(rate, at: Instant(milliseconds: .max)) == nil) }
        #expect(bucket.take(rate, at: Instant(milliseconds: .max)) == 500)
    }

    @Test("The largest numbers that can be asked for do not overflow")
    func largest() {
        let rate = TokenBucket.Rate(count: .max, milliseconds: .max, burst: .max)
        var bucket = TokenBucket(full: rate, at: start)
        #expect(bucket.take(rate, at: start + .max) == nil)
    }

    @Test("Each caller has a bucket of his own")
    func callers() {
        var buckets = TokenBuckets(rate)
        for _ in 0..<4 { #expect(buckets.take(for: "ada", at: start) == nil) }
        #expect(buckets.take(for: "ada", at: start) == 500)
        #expect(buckets.wait(for: "ada", at: start) == 500)
        #expect(buckets.wait(for: "bob", at: start) == 0)
        #expect(buckets.take(for: "bob", at: start) == nil)
    }

    @Test("However many come, few are remembered: who has asked last is, and who has rested need not be")
    func bounded() {
        var buckets = TokenBuckets(rate, callerLimit: 10)
        for _ in 0..<4 { _ = buckets.take(for: "ada", at: start) }
        for index in 0..<1_000 {
            #expect(buckets.take(for: "caller \(index)", at: start) == nil)
            #expect(buckets.count <= 10)
            #expect(buckets.take(for: "ada", at: start) == 500)
        }
        let later = start + 60_000
        for index in 0..<10 { _ = buckets.take(for: "later \(index)", at: later) }
        #expect(buckets.count <= 10)
    }
}
