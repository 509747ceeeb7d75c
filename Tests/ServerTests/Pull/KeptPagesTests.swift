import Foundation
import Testing
import TidemarkCore

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Pages of changes are made once for all who pull the same")
struct KeptPagesTests {
    private static let entities: [EntityDeclaration] = [
        .state("note", patch: ["body"]), .state("report", direction: .push),
    ]
    private static let service = Access(.readWrite, principal: "operator", isService: true)
    private static let text = String(repeating: "the same words again and again ", count: 200)

    private static func limits(kept: Int) -> Limits {
        var limits = Limits()
        (limits.keptPageBytes, limits.requestsPerSecond) = (kept, 0)
        return limits
    }

    private static func bench(_ kind: StoreKind, kept: Int = Limits().keptPageBytes) throws -> EngineBench {
        try EngineBench(kind, entities: entities, limits: limits(kept: kept))
    }

    @Test("A nudge to a thousand devices of a scope assembles its page once", arguments: StoreKind.allCases)
    func thousand(kind: StoreKind) async throws {
        let bench = try Self.bench(kind)
        _ = try await bench.push(upsert(1, "t1", #"{"x":1}"#))
        let token = try #require(try await bench.pullAll().nextSince)
        _ = try await bench.push(upsert(2, "t2", #"{"x":2}"#), upsert(3, "t3", "{}"))
        let made = bench.server.keptPages.made
        let server = bench.server
        let pages = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for index in 0..<1000 {
                let access = Access.read(as: "user-\(index)")
                group.addTask {
                    guard index % 2 == 0 else {
                        let body = #"{"scope":"s","clientId":"device-\#(index)","since":"\#(token)","operations":[]}"#
                        let answer = try await server.exchange(Array(body.utf8), mode: .pushAndPull) { _ in access }
                        return Array(answer.drop { $0 != UInt8(ascii: "s") })
                    }
                    return try await server.changes(
                        in: "s", since: token, limit: nil, access: access, client: "device-\(index)")
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(bench.server.keptPages.made - made == 1)
        for page in pages {
            let text = String(decoding: page, as: UTF8.self)
            #expect(text.contains(#""id":"t2""#) && text.contains(#""id":"t3""#) && !text.contains(#""id":"t1""#))
        }
    }

    @Test("A kept page is the one that its reader would have been read for himself", arguments: StoreKind.allCases)
    func equal(kind: StoreKind) async throws {
        let bench = try Self.bench(kind)
        let plain = SyncServer(
            store: bench.bench.store, entities: Self.entities, limits: Self.limits(kept: 0), configuration: .still)
        _ = try await bench.push(
            upsert(1, "n1", #"{"body":"\#(Self.text)","x":1}"#, entity: "note"), upsert(2, "t1", #"{"x":1,"y":1}"#),
            upsert(3, "r1", "{}", entity: "report"))
        let since = try await bench.pullAll().nextSince
        _ = try await bench.push(
            upsert(4, "n1", #"{"body":"\#(Self.text)more"}"#, entity: "note"), upsert(5, "t1", #"{"y":2}"#),
            upsert(6, "r2", "{}", entity: "report"), upsert(7, "t2", "{}"), delete(8, "t2", base: 7))
        var seen: Set<[UInt8]> = []
        for round in 0..<2 {
            for since in [since, nil] {
                for takes in [[], .patches, .fields, [.patches, .fields]] as [Differences] {
                    for access in [Self.service, .read(as: "ada"), .read(as: "eve")] {
                        for limit: Int64? in [nil, 1, 2] {
                            let page = try await bench.server.changes(
                                in: "s", since: since, limit: limit, takes: takes, access: access)
                            let own = try await plain.changes(
                                in: "s", since: since, limit: limit, takes: takes, access: access)
                            #expect(page == own, "round \(round), \(takes), \(access), \(String(describing: limit))")
                            seen.insert(page)
                        }
                    }
                }
            }
        }
        #expect(seen.count > 12)
        #expect(plain.keptPages.bytes == 0)
    }

    @Test("A commit is on every page that is asked for after it", arguments: StoreKind.allCases)
    func fresh(kind: StoreKind) async throws {
        let bench = try Self.bench(kind)
        _ = try await bench.push(upsert(1, "t0", "{}"))
        let since = try await bench.pullAll().nextSince
        let server = bench.server
        for round in 1...20 {
            _ = try await bench.push(upsert(round + 1, "t\(round)", "{}"))
            let pages = try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for index in 0..<8 {
                    group.addTask {
                        try await server.changes(in: "s", since: since, limit: nil, access: .read(as: "user-\(index)"))
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            for page in pages { #expect(try Answer(page).changes.map(\.id) == (1...round).map { "t\($0)" }) }
        }
        #expect(server.keptPages.made <= 21)
    }

    @Test("No more is kept than the limit says, and a page that is asked for stays")
    func bounded() async throws {
        let bench = try Self.bench(.sqlite, kept: 100_000)
        let server = bench.server
        var tokens: [String?] = [nil]
        for number in 1...100 {
            _ = try await bench.push(upsert(number, "n\(number)", #"{"body":"\#(Self.text)"}"#, entity: "note"))
        }
        var largest = 0
        for _ in 0..<99 {
            let page = try await bench.changes(since: tokens.last ?? nil, limit: 1)
            tokens.append(page.nextSince)
            let made = server.keptPages.made
            _ = try await bench.changes(limit: 1)
            #expect(server.keptPages.made == made)
            largest = max(largest, server.keptPages.bytes)
        }
        #expect(largest <= 100_000 && largest > 50_000)
        // Larger than half of it.
        _ = try await bench.changes()
        #expect(server.keptPages.bytes <= 100_000)
    }

    private static func key() -> KeptPages.Key {
        KeptPages.Key(
            scope: "s", moment: KeptPages.Moment(ScopeState()), scan: .beginning(of: ScopeState().history), limit: 1,
            takes: [], withheld: WithheldEntities())
    }

    @Test("Where making a page hangs one reader waits for it, and makes it for all who come later")
    func hanging() {
        let pages = KeptPages(limit: 10_000, patience: 0.05)
        let (begun, latch) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        defer { latch.signal() }
        Thread.detachNewThread {
            _ = pages.page(Self.key()) {
                begun.signal()
                latch.wait()
                return KeptPages.Page(rows: [], end: 1)
            }
        }
        begun.wait()
        let page = KeptPages.Page(rows: [1, 2, 3], end: nil)
        #expect(pages.page(Self.key()) { page } == page)
        #expect(pages.page(Self.key()) { KeptPages.Page(rows: [], end: 2) } == page)
        #expect((pages.made, pages.bytes) == (1, KeptPages.entryCost + 3))
    }

    @Test("Where making a page fails the next one makes it, and an erased scope's are let go of")
    func failed() async throws {
        struct Failure: Error {}
        let pages = KeptPages(limit: 10_000)
        let key = Self.key()
        #expect(throws: Failure.self) { try pages.page(key) { throw Failure() } }
        let page = KeptPages.Page(rows: [1, 2, 3], end: nil)
        #expect(pages.page(key) { page } == page)
        #expect(pages.page(key) { KeptPages.Page(rows: [], end: 1) } == page)
        #expect((pages.made, pages.bytes) == (1, KeptPages.entryCost + 3))
        pages.forget("s")
        #expect(pages.bytes == 0)
    }

    @Test("An erasure leaves none of the scope's pages in the memory of its node")
    func erased() async throws {
        let bench = try Self.bench(.sqlite)
        _ = try await bench.push(upsert(1, "t1", "{}"))
        _ = try await bench.pullAll()
        #expect(bench.server.keptPages.bytes > 0)
        _ = try await bench.server.erase(.scope("s"))
        #expect(bench.server.keptPages.bytes == 0)
        #expect(await problem { _ = try await bench.changes() }?.code == .scopeErased)
    }

    @Test("A page that an old reader keeps while the scope is erased goes as well")
    func erasedMeanwhile() async throws {
        let bench = try Self.bench(.sqlite)
        _ = try await bench.push(upsert(1, "t1", "{}"))
        let pages = Guarded<KeptPages?>(nil)
        var configuration = SyncServer.Configuration.still
        // The clock is asked before the mark, and again when the last rows and blobs have gone.
        configuration.now = {
            _ = pages.withLock { $0 }?.page(Self.key()) { KeptPages.Page(rows: [1], end: nil) }
            return Date(milliseconds: 1_000_000)
        }
        let server = SyncServer(
            store: bench.bench.store, entities: Self.entities, limits: Self.limits(kept: 100_000),
            configuration: configuration)
        pages.withLock { $0 = server.keptPages }
        _ = try await server.erase(.scope("s"))
        #expect(server.keptPages.made > 1)
        #expect(server.keptPages.bytes == 0)
    }
}
