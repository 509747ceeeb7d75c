import Testing

@testable import TidemarkCore

@Suite("Page sizing (A11)")
struct PageSizingTests {
    @Test("full and quick pages make it grow to its limit, slow ones shrink it to its floor")
    func range() {
        var sizing = PageSizing()
        for _ in 0..<50 { sizing.received(rows: sizing.limit, bytes: 100_000, milliseconds: 100) }
        #expect(sizing.limit == 5_000)
        for _ in 0..<50 { sizing.received(rows: sizing.limit, bytes: 100_000, milliseconds: 5_000) }
        #expect(sizing.limit == 50)
    }

    @Test("a page that was not full says nothing about a larger one")
    func partial() {
        var sizing = PageSizing()
        sizing.received(rows: 3, bytes: 100, milliseconds: 1)
        #expect(sizing.limit == 500)
    }

    @Test("a page of too many bytes shrinks it although it came quickly; so does one that never came")
    func bytes() {
        var sizing = PageSizing()
        sizing.received(rows: 500, bytes: 3 << 20, milliseconds: 10)
        #expect(sizing.limit == 250)
        sizing.failed()
        #expect(sizing.limit == 125)
    }
}
