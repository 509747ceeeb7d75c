#if Server
    import Foundation
    import NIOHTTP1
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire
    import Testing

    /// The bookmark service's design taken by its word, on a model, and the same story with ours (E1, E2).
    @Suite struct NaiveCursorTests {
        /// Rows get the time at which their transaction began, and are seen once it has committed. A reader asks for
        /// what is strictly after (updated at, id).
        private struct NaiveService {
            struct Place: Comparable {
                var time: Int
                var id: String

                static func < (a: Place, b: Place) -> Bool { (a.time, a.id) < (b.time, b.id) }
            }

            private(set) var rows: [Place] = []
            private var clock = 0

            mutating func begin(_ id: String) -> Place {
                clock += 1
                return Place(time: clock, id: id)
            }

            mutating func commit(_ place: Place) { rows.append(place) }

            func delta(after cursor: Place?, limit: Int) -> (upserts: [Place], next: Place?) {
                let found = rows.sorted().filter { row in cursor.map { row > $0 } ?? true }
                let page = Array(found.prefix(limit))
                return (page, found.count > limit ? page.last : nil)
            }
        }

        private enum Step: Hashable { case begin(Int), commit(Int), read }

        /// All orders of what some writers and one reader do, who reads twice in between.
        private static func orders(writers: Int) -> [[Step]] {
            func rest(_ begun: [Int: Bool], _ reads: Int, _ so: [Step]) -> [[Step]] {
                var all: [[Step]] = []
                for writer in 0..<writers {
                    switch begun[writer] {
                    case nil: all += rest(begun.merging([writer: false]) { $1 }, reads, so + [.begin(writer)])
                    case false?: all += rest(begun.merging([writer: true]) { $1 }, reads, so + [.commit(writer)])
                    default: break
                    }
                }
                if reads > 0 { all += rest(begun, reads - 1, so + [.read]) }
                return all.isEmpty ? [so] : all
            }
            return rest([:], 2, [])
        }

        @Test("a cursor of times that were taken before the commit skips rows; one of commits skips none")
        func skips() async throws {
            let orders = Self.orders(writers: 3)
            #expect(orders.count == 2520)
            var skipping: [[Step]] = []
            for order in orders {
                var (service, open) = (NaiveService(), [Int: NaiveService.Place]())
                var (cursor, held) = (nil as NaiveService.Place?, Set<String>())
                func read() {
                    let page = service.delta(after: cursor, limit: 10)
                    held.formUnion(page.upserts.map(\.id))
                    // A client that is cleverer than the text: it keeps the last row's place at the end.
                    cursor = page.upserts.last ?? cursor
                }
                for step in order {
                    switch step {
                    case .begin(let writer): open[writer] = service.begin("b\(writer)")
                    case .commit(let writer): service.commit(try #require(open[writer]))
                    case .read: read()
                    }
                }
                read()
                if held.count < 3 { skipping.append(order) }
            }
            #expect(skipping.count > 100)
            // The same orders: here a row has its place once it is committed.
            try await DialectServer.run(.sqlite) { [skipping] server in
                let ada = try await server.caller()
                for (number, order) in skipping.prefix(50).enumerated() {
                    var (cursor, held) = (nil as String?, Set<String>())
                    func read() async throws {
                        let place = cursor.map { "?cursor=\($0)" } ?? ""
                        let answer = try await ada.get("/bookmark\(number)/delta\(place)")
                        let upserts = answer.member("upserts") as? [[String: Any]] ?? []
                        held.formUnion(upserts.compactMap { $0["id"] as? String })
                        cursor = answer.headers.first(name: "Tidemark-Checkpoint")
                    }
                    for step in order {
                        switch step {
                        case .begin: break
                        case .commit(let writer): _ = try await ada.put("/rest/bookmark\(number)/b\(writer)", "{}")
                        case .read: try await read()
                        }
                    }
                    try await read()
                    #expect(held.count == 3, "\(order)")
                }
            }
        }

        @Test("null at the end forgets the place, and everything comes again; the checkpoint keeps it")
        func null() async throws {
            var service = NaiveService()
            for number in 0..<20 { service.commit(service.begin("b\(number)")) }
            var (cursor, came) = (nil as NaiveService.Place?, 0)
            for _ in 0..<3 {
                repeat {
                    let page = service.delta(after: cursor, limit: 7)
                    came += page.upserts.count
                    cursor = page.next
                } while cursor != nil
            }
            #expect(came == 60)
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                for number in 0..<20 { _ = try await ada.put("/rest/bookmark/b\(number)", "{}") }
                var (place, came) = (nil as String?, 0)
                for _ in 0..<3 {
                    var isAtEnd = false
                    while !isAtEnd {
                        let from = place.map { "&cursor=\($0)" } ?? ""
                        let answer = try await ada.get("/bookmark/delta?limit=7\(from)")
                        came += (answer.member("upserts") as? [Any] ?? []).count
                        isAtEnd = answer.member("nextCursor") is NSNull
                        place = answer.headers.first(name: "Tidemark-Checkpoint")
                    }
                }
                #expect(came == 20)
            }
        }
    }
#endif
