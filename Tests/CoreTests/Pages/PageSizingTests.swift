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

    @Test("under other settings the size stays where it was, as far as they let it, and below what a server gives")
    func use() {
        var wide = PageSizing.Settings()
        (wide.range, wide.start) = (500...1000, 500)
        var narrow = PageSizing.Settings()
        (narrow.range, narrow.start) = (50...100, 50)
        var sizing = PageSizing(wide)
        sizing.use(narrow)
        #expect(sizing.limit == 100)
        sizing.use(wide)
        #expect(sizing.limit == 500)
        _ = sizing.refused()
        sizing.use(wide)
        #expect(sizing.limit == 250)
        for _ in 0..<9 { sizing.received(rows: sizing.limit, bytes: 1, milliseconds: 1) }
        #expect(sizing.limit == 250)
        sizing.use(narrow)
        #expect(sizing.limit == 100)
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

    @Test("a batch shrinks from what was in it, and no further than to one operation")
    func batches() {
        var settings = PageSizing.Settings()
        (settings.range, settings.start) = (1...100, 100)
        (settings.targetMilliseconds, settings.targetBytes) = (.max, .max)
        var sizing = PageSizing(settings)
        sizing.failed(at: 40)
        #expect(sizing.limit == 20)
        sizing.received(rows: 19, bytes: 0, milliseconds: 0)
        #expect(sizing.limit == 20)
        sizing.received(rows: 20, bytes: 0, milliseconds: 0)
        #expect(sizing.limit == 30)
        for _ in 0..<9 { sizing.failed(at: 5) }
        #expect(sizing.limit == 1)
        for _ in 0..<30 { sizing.received(rows: sizing.limit, bytes: 0, milliseconds: 0) }
        #expect(sizing.limit == 100)
        #expect(sizing.refused(at: 10) == true)
        for _ in 0..<30 { sizing.received(rows: sizing.limit, bytes: 0, milliseconds: 0) }
        #expect(sizing.limit == 5)
    }
}
