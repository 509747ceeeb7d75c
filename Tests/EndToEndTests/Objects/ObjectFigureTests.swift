#if Server
    import Foundation
    import TidemarkObjects
    import TidemarkServer
    import TidemarkTesting
    import TidemarkWire
    import Testing

    /// The bytes that each strategy moves, and that the page shows them as they are.
    @Suite struct ObjectFigureTests {
        private enum Story: String, CaseIterable {
            case nothing = "nothing changed"
            case deletion = "one deleted"
            case addition = "one added"
            case both = "one deleted, one added"
        }

        /// What one fetch moved.
        private struct Figure: Sendable {
            var up = 0
            var down = 0
            /// Bytes of bodies as they came, compressed.
            var compressed = 0

            var text: String { up == 0 ? Self.grouped(down) : "\(Self.grouped(up)) + \(Self.grouped(down))" }

            private static func grouped(_ number: Int) -> String {
                let digits = Array(String(number))
                return String(
                    digits.indices.reversed().reduce(into: [Character]()) { text, index in
                        if (digits.count - 1 - index) % 3 == 0, index != digits.count - 1 { text.append(",") }
                        text.append(digits[index])
                    }.reversed())
            }
        }

        /// Texts that compress no better than those that people write.
        private static func fields(_ number: Int) -> [String: Value] {
            var generator = SplitMix64(seed: UInt64(number))
            let letters = Array("abcdefghijklmnopqrstuvwxyz     ")
            let text = String((0..<200).map { _ in letters[Int.random(in: 0..<letters.count, using: &generator)] })
            return [
                "name": .text("conf\(number)"), "place": "Hamburg", "begins": .integer(1_790_000_000_000),
                "about": .text(text),
            ]
        }

        private func measure(
            _ bench: ObjectBench, _ store: ObjectStore, _ count: Int, _ story: Story
        ) async throws -> Figure {
            try await bench.server.server.commit(to: "w") { changes in
                for number in 0..<count { changes.upsert("conference", id: Self.id(number), Self.fields(number)) }
                changes.delete("conference", id: Self.id(count))
            }
            _ = try await store.fetch("conference")
            try await bench.server.server.commit(to: "w") { changes in
                if story == .deletion || story == .both { changes.delete("conference", id: Self.id(count - 1)) }
                if story == .addition || story == .both {
                    changes.upsert("conference", id: Self.id(count), Self.fields(count))
                }
            }
            _ = bench.transport.taken()
            let change = story == .deletion ? -1 : story == .addition ? 1 : 0
            #expect(try await store.fetch("conference").count == count + change)
            return bench.transport.taken().reduce(into: Figure()) { figure, exchange in
                figure.up += exchange.up
                figure.down += exchange.down
                figure.compressed += exchange.response.bytesReceived
            }
        }

        private static func id(_ number: Int) -> RecordID { .init("conf\(number)") ?? "x" }

        @Test(arguments: LiveStore.allCases) func thePageShowsWhatWasMeasured(kind: LiveStore) async throws {
            let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
            let page = try String(contentsOf: root.appending(path: "Documentation/Objects.md"), encoding: .utf8)
            for count in [10, 100, 1000] {
                for story in Story.allCases {
                    var figures: [Figure] = []
                    for delta in DeltaSyncStrategy.allCases {
                        let figure = Guarded(Figure())
                        try await DialectServer.run(kind) { server in
                            let bench = try await ObjectBench(server)
                            let store = try bench.store(.init(delta: delta, kept: .file))
                            let measured = try await measure(bench, store, count, story)
                            figure.withLock { $0 = measured }
                        }
                        figures.append(figure.withLock { $0 })
                    }
                    let cells = figures.map(\.text).joined(separator: " | ")
                    let row = "| \(count) | \(story.rawValue) | \(cells) |"
                    let isShown = page.contains(row + "\n")
                    #expect(isShown, "\(row)")
                    let full = figures[0]
                    for delta in figures.dropFirst() {
                        #expect((delta.up + delta.down) * 4 < full.up + full.down, "\(row)")
                        #expect(delta.compressed * 4 < full.compressed, "\(row)")
                    }
                }
            }
        }
    }
#endif
