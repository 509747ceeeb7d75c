#if Server
    import Foundation
    import NIOHTTP1
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire
    import Testing

    /// `x-apiomat-delta`: only what is new or changed comes, and ids to drop.
    @Suite struct DeltaHeaderTests {
        private func conferences(_ ada: PlainCaller, _ numbers: Range<Int>) async throws {
            for number in numbers {
                #expect(try await ada.put("/rest/conference/conf\(number)", #"{"name":"c\#(number)"}"#).status == 201)
            }
        }

        private func map(_ list: [[String: Any]], quoted: Bool = true) -> String {
            let quote = quoted ? "\"" : ""
            let members = list.map { record in
                #""\#(record["id"] as? String ?? "")":\#(quote)\#(record["lastModifiedAt"] as? Int ?? 0)\#(quote)"#
            }
            return "{" + members.joined(separator: ", ") + "}"
        }

        /// Remote deletion and remote addition, as the original tells them.
        @Test(arguments: LiveStore.allCases, ["map", "stamp"]) func conferencesComeAndGo(
            kind: LiveStore, form: String
        ) async throws {
            try await DialectServer.run(kind) { server in
                let (ada, bob) = (try await server.caller(), try await server.caller("bob"))
                try await conferences(bob, 0..<10)
                let all = try await ada.get("/rest/conference")
                #expect(all.list.count == 10 && all.deleted == nil)
                let header = form == "map" ? map(all.list) : "\"\(all.stamp)\""
                _ = try await bob.delete("/rest/conference/conf9")
                let deleted = try await ada.get("/rest/conference", ("x-apiomat-delta", header))
                #expect((deleted.text, deleted.deleted) == ("[]", ["conf9"]))
                #expect(deleted.headers.first(name: "x-apiomat-delta-deleted") == #"["conf9"]"#)
                let held = Array(all.list.dropLast())
                let next = form == "map" ? map(held, quoted: false) : "\(deleted.stamp)"
                #expect(try await ada.get("/rest/conference", ("x-apiomat-delta", next)).text == "[]")
                try await conferences(bob, 9..<10)
                let added = try await ada.get("/rest/conference", ("x-apiomat-delta", next))
                #expect((added.ids, added.deleted) == (["conf9"], []))
                _ = try await bob.patch("/rest/conference/conf3", #"{"name":"other"}"#)
                let stamp = form == "map" ? map(held + added.list) : "\(added.stamp)"
                let changed = try await ada.get("/rest/conference", ("x-apiomat-delta", stamp))
                #expect((changed.ids, changed.deleted) == (["conf3"], []))
            }
        }

        @Test(arguments: LiveStore.allCases) func aRecordThatStopsMatchingIsGoneFromTheQuery(
            kind: LiveStore
        ) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                for number in 0..<4 {
                    _ = try await ada.put("/rest/talk/t\(number)", #"{"room":"a","n":\#(number)}"#)
                }
                let all = try await ada.get("/rest/talk?room=a")
                _ = try await ada.patch("/rest/talk/t1", #"{"room":"b"}"#)
                _ = try await ada.delete("/rest/talk/t2")
                _ = try await ada.patch("/rest/talk/t3", #"{"n":7}"#)
                for header in [map(all.list), "\(all.stamp)"] {
                    let answer = try await ada.get("/rest/talk?room=a", ("x-apiomat-delta", header))
                    #expect((answer.ids, answer.deleted?.sorted()) == (["t3"], ["t1", "t2"]), "\(header)")
                    let without = try await ada.get("/rest/talk", ("x-apiomat-delta", header))
                    #expect((without.ids.sorted(), without.deleted) == (["t1", "t3"], ["t2"]), "\(header)")
                }
            }
        }

        /// What the server never had, what is in another scope and what was deleted are told alike.
        @Test(arguments: LiveStore.allCases) func anIdThatTheCallerMayNotSeeTellsNothing(
            kind: LiveStore
        ) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                let bob = try await server.caller("bob", scopes: ["v": .readWrite])
                _ = try await bob.put("/rest/task/secret", "{}")
                _ = try await ada.put("/rest/task/gone", "{}")
                _ = try await ada.delete("/rest/task/gone")
                _ = try await ada.put("/rest/task/here", "{}")
                let odd = #""never":1,"secret":"1780000000000","gone":2,"":3,"a\u0001b":4,"n\u00e9 \"x\"":5"#
                let answer = try await ada.get("/rest/task", ("x-apiomat-delta", "{\(odd)}"))
                #expect(answer.ids == ["here"])
                #expect(answer.deleted == ["", "a\u{1}b", "gone", "never", "né \"x\"", "secret"])
                let raw = answer.headers.first(name: "x-apiomat-delta-deleted") ?? ""
                #expect(raw.utf8.allSatisfy { (0x20...0x7e).contains($0) } && raw.contains(#"n\u00e9"#))
            }
        }

        /// Each time between and at the times of rows, with rows that were superseded, deleted and swept.
        @Test(arguments: LiveStore.allCases) func noTimeSkipsARecordOrRepeatsOne(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                var states: [(time: Int64, live: [String: Int64])] = [(DialectServer.start - 1, [:])]
                for step in 0..<24 {
                    // A clock that stands gives times that grow all the same.
                    if step % 3 == 0 { server.pass(3) }
                    let id = "t\(step * 7 % 5)"
                    var live = states.last?.live ?? [:]
                    if step % 5 == 4, live[id] != nil {
                        _ = try await ada.delete("/rest/task/\(id)")
                        live[id] = nil
                    } else {
                        let put = try await ada.put("/rest/task/\(id)", #"{"step":\#(step)}"#)
                        live[id] = Int64(put.member("lastModifiedAt") as? Int ?? 0)
                    }
                    states.append((try await ada.get("/rest/task").stamp, live))
                }
                #expect(zip(states, states.dropFirst()).allSatisfy { $0.time < $1.time })
                server.pass(3_600_000)
                try await server.server.sweep()
                let last = states[states.count - 1]
                for (index, state) in states.enumerated() {
                    let end = index + 1 < states.count ? states[index + 1].time : state.time + 1
                    for time in state.time..<min(end, state.time + 4) {
                        for limit in [1, 100] {
                            let pages = try await ada.listAll(
                                "/rest/task?limit=\(limit)", ("x-apiomat-delta", "\(time)"))
                            var held = state.live
                            for record in pages.flatMap(\.list) {
                                held[record["id"] as? String ?? ""] = Int64(record["lastModifiedAt"] as? Int ?? 0)
                            }
                            for id in pages.flatMap({ $0.deleted ?? [] }) { held[id] = nil }
                            #expect(held == last.live, "from \(time)")
                            // Nothing comes that the caller has.
                            let wanted = last.live.filter { $0.value > state.time }
                            #expect(Set(pages.flatMap(\.ids)) == Set(wanted.keys), "from \(time)")
                            #expect(pages.last?.stamp == last.time)
                        }
                    }
                }
            }
        }

        @Test(arguments: LiveStore.allCases) func aTimeAheadOfTheServersIsNotBelieved(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                _ = try await ada.put("/rest/task/t1", "{}")
                _ = try await ada.put("/rest/task/t2", "{}")
                _ = try await ada.delete("/rest/task/t2")
                server.pass(60_000)
                let year: Int64 = 365 * 86_400_000
                let present = try await ada.get("/rest/task", ("x-apiomat-delta", "\(DialectServer.start + 60_000)"))
                #expect((present.ids, present.deleted) == ([], []))
                for time in [DialectServer.start + year, DialectServer.start - year, .max] {
                    let answer = try await ada.get("/rest/task", ("x-apiomat-delta", "\(time)"))
                    #expect((answer.ids, answer.deleted) == (["t1"], ["t2"]))
                    #expect(answer.stamp == DialectServer.start + 2)
                }
                let first = try await ada.get("/rest/task", ("x-apiomat-delta", "0"))
                #expect((first.ids, first.deleted) == (["t1"], []))
            }
        }

        @Test(arguments: LiveStore.allCases) func aHeaderThatIsTooLargeHasACodeOfItsOwn(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                try await conferences(ada, 0..<3)
                let stamp = try await ada.get("/rest/conference").stamp
                func held(_ count: Int) -> String {
                    "{" + (0..<count).map { #""conf\#($0)":"1464946487123""# }.joined(separator: ",") + "}"
                }
                let fits = try await ada.get("/rest/conference", ("x-apiomat-delta", held(300)))
                #expect((fits.ids.count, fits.deleted?.count) == (3, 297))
                // Beyond what this header may have, and beyond what any header may have.
                for count in [400, 5000] {
                    let answer = try await ada.get("/rest/conference", ("x-apiomat-delta", held(count)))
                    #expect((answer.status, answer.code) == (431, .headerTooLarge), "\(count)")
                    #expect(answer.text.contains("one timestamp"))
                }
                let instead = try await ada.get("/rest/conference", ("x-apiomat-delta", "\(stamp)"))
                #expect((instead.text, instead.deleted) == ("[]", []))
            }
        }

        @Test(
            "A delta header that says nothing is a malformed request",
            arguments: [
                "", "x", "{", #"{"a"}"#, #"{"a":"x"}"#, #"{"a":1,"a":2}"#, "[1]", "1.5", "12 13", #"{"a":null}"#,
                "99999999999999999999",
            ])
        func headersThatSayNothing(header: String) async throws {
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                let answer = try await ada.get("/rest/task", ("x-apiomat-delta", header))
                #expect((answer.status, answer.code) == (400, .malformedRequest))
            }
        }

        /// More ids than one header takes, in mid-scan of a caller who had nothing, too.
        @Test(arguments: LiveStore.allCases) func manyDeletionsComeInPages(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                let name = String(repeating: "x", count: 90)
                try await server.server.commit(to: "w") { changes in
                    for number in 0..<250 { changes.upsert("task", id: .init("\(name)\(number)") ?? "x", ["n": 1]) }
                }
                let stamp = try await ada.get("/rest/task?limit=1").stamp
                try await server.server.commit(to: "w") { changes in
                    for number in 0..<200 { changes.delete("task", id: .init("\(name)\(number)") ?? "x") }
                }
                let pages = try await ada.listAll("/rest/task", ("x-apiomat-delta", "\(stamp)"))
                #expect(pages.count == 3 && pages.flatMap { $0.deleted ?? [] }.count == 200)
                #expect(pages.allSatisfy { $0.headers.first(name: "x-apiomat-delta-deleted")?.utf8.count ?? 0 <= 8192 })
                let first = try await ada.listAll("/rest/task?limit=20", ("x-apiomat-delta", "0"))
                #expect(first.flatMap(\.ids).count == 50 && first.flatMap { $0.deleted ?? [] }.isEmpty)
            }
        }

        @Test(arguments: LiveStore.allCases) func whoWasAwayForTooLongIsToldSo(kind: LiveStore) async throws {
            try await DialectServer.run(kind, retention: .seconds(86_400)) { server in
                let ada = try await server.caller()
                for number in 0..<6 { _ = try await ada.put("/rest/task/t\(number)", "{}") }
                let early = try await ada.get("/rest/task").stamp
                _ = try await ada.delete("/rest/task/t0")
                let middle = try await ada.get("/rest/task").stamp
                server.pass(3 * 86_400_000)
                _ = try await ada.patch("/rest/task/t1", #"{"n":1}"#)
                try await server.server.compact(trustingClock: true)
                let answer = try await ada.get("/rest/task", ("x-apiomat-delta", "\(early)"))
                #expect((answer.status, answer.code) == (410, .checkpointExpired))
                #expect(answer.member("reason") as? String == "retention")
                // Who had nothing comes to the end all the same, page by page, and so does who names what he has.
                let first = try await ada.listAll("/rest/task?limit=1", ("x-apiomat-delta", "0"))
                #expect(first.flatMap(\.ids).sorted() == ["t1", "t2", "t3", "t4", "t5"])
                let named = try await ada.get("/rest/task?limit=2", ("x-apiomat-delta", #"{"t0":1}"#))
                #expect(named.deleted == ["t0"])
                let since = try await ada.get("/rest/task", ("x-apiomat-delta", "\(middle)"))
                #expect(since.status == 410 || (since.ids, since.deleted) == (["t1"], []))
            }
        }
    }
#endif
