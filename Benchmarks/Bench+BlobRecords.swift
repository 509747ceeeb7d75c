#if canImport(Glibc)
    import Foundation
    import GRDB
    import Tidemark

    // MARK: Records while bytes travel

    extension BlobBench {
        private static let turns = 10
        private static let exchanges = 10
        private static let records = 20
        private static let mostTimes = 1.1
        private static let pace = 20
        private static let mostMebibytes = 256
        /// Looks, 2 ms apart, until bytes move.
        private static let looks = 1000

        /// How long records take from one device to another while a file goes up from the first, and while none does,
        /// in turns: with all that loopback carries, where both compete for the processor, and at a network's pace.
        func beside() async throws -> [Bool] {
            let all = Self.turns * Self.exchanges
            Self.say("\(Self.records) records up and down, \(all) times with a file under way and \(all) times without")
            var held = try await beside("at full speed", scope: "beside:1", bytesPerSecond: nil)
            held += try await beside("at \(Self.pace) MiB/s", scope: "beside:2", bytesPerSecond: Self.pace << 20)
            return held
        }

        private func beside(_ name: String, scope: Scope, bytesPerSecond: Int?) async throws -> [Bool] {
            let wire = try CutWire(to: serverPort, bytesPerSecond: bytesPerSecond)
            defer { wire.end() }
            let label = bytesPerSecond == nil ? "full" : "paced"
            let here = try device("\(label)-here", in: scope, port: wire.port)
            let there = try device("\(label)-there", in: scope, port: wire.port)
            var number = 0
            // The first ones bring the declarations and open the connections.
            for _ in 0..<Self.exchanges { _ = try await exchange(&number, here, there) }
            var (without, with) = ([Double](), [Double]())
            var load = Load(label: label)
            for _ in 0..<Self.turns {
                for _ in 0..<Self.exchanges { without.append(try await exchange(&number, here, there)) }
                with += try await turn(&load, &number, here, there)
            }
            let last = "round \(number)"
            let arrived = try await there.pool.read { db in
                try Int.fetchOne(db, sql: "SELECT count(*) FROM photo WHERE title = ?", arguments: [last]) ?? 0
            }
            guard arrived == Self.records else { throw BlobBenchFailure(description: "records did not arrive") }
            return tell(name, without, with)
        }

        private func tell(_ name: String, _ without: [Double], _ with: [Double]) -> [Bool] {
            let parts = [("median", 0.5), ("p95", 0.95)]
            return parts.map { word, part in
                let (base, loaded) = (Self.part(part, of: without), Self.part(part, of: with))
                let shown = String(format: "%.1f ms without, %.1f ms with", base * 1000, loaded * 1000)
                Self.say("  \(name), \(word): \(shown)")
                return Self.tell("\(name), \(word)", loaded / base, "times as long", atMost: Self.mostTimes)
            }
        }

        private static func part(_ part: Double, of values: [Double]) -> Double {
            let sorted = values.sorted()
            return sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
        }

        /// An edit of all records until the other device has it.
        private func exchange(_ number: inout Int, _ here: Device, _ there: Device) async throws -> Double {
            number += 1
            let title = "round \(number)"
            try await here.pool.write { db in
                for index in 0..<Self.records {
                    try db.execute(
                        sql: """
                            INSERT INTO photo (id, title) VALUES (?, ?)
                            ON CONFLICT (id) DO UPDATE SET title = excluded.title
                            """,
                        arguments: ["r\(index)", title])
                }
            }
            return try await seconds {
                _ = try await here.engine.syncNow()
                _ = try await there.engine.syncNow()
            }
        }

        // MARK: The file under way

        /// The files that are sent meanwhile, one after another.
        private struct Load {
            let label: String
            var count = 0
            var current: BlobReference?
        }

        /// Exchanges of which each began and ended while a file was going up.
        private func turn(
            _ load: inout Load, _ number: inout Int, _ here: Device, _ there: Device
        ) async throws -> [Double] {
            var times: [Double] = []
            while times.count < Self.exchanges {
                let photo = try await next(&load, here)
                let transfer = Task { try await here.attachments.transfer() }
                defer { transfer.cancel() }
                while times.count < Self.exchanges, try await isUnderWay(photo, here) {
                    let time = try await exchange(&number, here, there)
                    guard try await isUnderWay(photo, here) else { break }
                    times.append(time)
                }
                transfer.cancel()
                // It ends because it is cancelled, or because all is sent.
                _ = await transfer.result
            }
            return times
        }

        /// The file that is not sent yet, or another one.
        private func next(_ load: inout Load, _ here: Device) async throws -> BlobReference {
            if let photo = load.current {
                guard try await here.attachments.state(of: photo) == .uploaded else { return photo }
                try await here.attachments.evict(photo)
            }
            let name = "beside-\(load.label)-\(load.count)"
            load.count += 1
            let source = try file(name, mebibytes: min(options.mebibytes, Self.mostMebibytes))
            let photo = try await here.attachments.add(contentsOf: source)
            try FileManager.default.removeItem(at: source)
            try await here.name("\(photo)", id: name)
            // The row itself travels before anything is measured.
            _ = try await here.engine.syncNow()
            load.current = photo
            return photo
        }

        /// Waits until bytes move, and returns whether they do: all may be sent, or the transfer may have ended.
        private func isUnderWay(_ photo: BlobReference, _ here: Device) async throws -> Bool {
            for _ in 0..<Self.looks {
                switch try await here.attachments.state(of: photo) {
                case .uploading(let sent) where sent > 0: return true
                case .uploaded: return false
                case .failed(let reason): throw BlobBenchFailure(description: "failed: \(reason)")
                default: try await Task.sleep(for: .milliseconds(2))
                }
            }
            return false
        }
    }
#endif
