#if canImport(Glibc)
    import Foundation
    import GRDB
    import Glibc
    import Tidemark

    // MARK: A large file, and many small ones

    extension BlobBench {
        private static let cutAfter = 10_000_000
        private static let mostMebibytes = 32.0
        private static let mostTimes = 1.1

        /// One file over a wire that is cut again and again, up from one device and down to another.
        func large() async throws -> [Bool] {
            let size = options.mebibytes
            Self.say("One file of \(size) MiB, the wire cut every 10 MB; one round, behind one of 1 MiB")
            let wire = try CutWire(to: serverPort, cutAfter: Self.cutAfter)
            defer { wire.end() }
            let sender = try device("large-up", in: "large:1", port: wire.port)
            let receiver = try device("large-down", in: "large:1", port: wire.port, download: .automatic)
            // A process takes some memory once, for its first requests: that is not the large file's.
            let first = try await sender.attachments.add(contentsOf: try file("first", mebibytes: 1))
            try await sender.name("\(first)", id: "first")
            try await sender.engine.syncNow()
            _ = try await run(sender, until: first, is: .uploaded)
            _ = try await run(receiver, until: first, is: .here)

            let source = try file("large", mebibytes: size)
            let up = MemoryWatch([getpid(), serverPID])
            defer { up.end() }
            let photo = try await sender.attachments.add(contentsOf: source)
            wire.reset()
            try await sender.name("\(photo)", id: "large")
            try await sender.engine.syncNow()
            let sent = try await run(sender, until: photo, is: .uploaded)
            up.end()
            var held = tell("up", sent, wire.counts, up)

            wire.reset()
            let down = MemoryWatch([getpid(), serverPID])
            defer { down.end() }
            let received = try await run(receiver, until: photo, is: .here)
            down.end()
            held += tell("down", received, wire.counts, down)
            guard let target = receiver.attachments.url(for: photo), try Self.isSame(source, target) else {
                throw BlobBenchFailure(description: "what arrived is not what was sent")
            }
            // The rest of the run needs the room.
            try FileManager.default.removeItem(at: source)
            for device in [sender, receiver] { try await device.attachments.evict(photo) }
            return held
        }

        private func tell(_ way: String, _ time: Double, _ counts: CutWire.Counts, _ memory: MemoryWatch) -> [Bool] {
            let size = Double(options.mebibytes)
            let shown = String(format: "%.1f s, %.1f MiB/s, %d cuts", time, size / time, counts.cuts)
            Self.say("  \(way): \(shown)")
            let mebibytes = { (bytes: Int) in Double(bytes) / 1_048_576 }
            return [
                Self.tell(
                    "\(way): bytes on the wire, both directions", mebibytes(counts.total) / size, "times the file's",
                    atMost: Self.mostTimes),
                Self.tell(
                    "\(way): memory of the devices and the wire", mebibytes(memory.grown(getpid())), "MiB more",
                    atMost: Self.mostMebibytes),
                Self.tell(
                    "\(way): memory of the server", mebibytes(memory.grown(serverPID)), "MiB more",
                    atMost: Self.mostMebibytes),
            ]
        }

        private static func isSame(_ one: URL, _ other: URL) throws -> Bool {
            let (left, right) = (try FileHandle(forReadingFrom: one), try FileHandle(forReadingFrom: other))
            defer {
                try? left.close()
                try? right.close()
            }
            while true {
                let piece = try left.read(upToCount: 1 << 20) ?? Data()
                guard piece == (try right.read(upToCount: 1 << 20) ?? Data()) else { return false }
                if piece.isEmpty { return true }
            }
        }

        // MARK: Small ones

        private static let smallBytes = 4096
        private static let leastRate = 500.0

        /// Many small files up, whose records the server has already.
        func small() async throws -> [Bool] {
            let count = options.count
            Self.say("\(count) files of 4 KiB; one round")
            let sender = try device("small", in: "small:1", port: serverPort)
            var names: [String] = []
            let added = try await seconds {
                for index in 0..<count {
                    let mark = "small \(index) "
                    let text = mark.padding(toLength: Self.smallBytes, withPad: "0123456789", startingAt: 0)
                    let photo = try await sender.attachments.add(Data(text.utf8))
                    names.append("\(photo)")
                }
            }
            Self.say(String(format: "  added in %.1f s, %.0f/s", added, Double(count) / added))
            try await sender.pool.write { [names] db in
                let statement = try db.makeStatement(sql: "INSERT INTO photo (id, image) VALUES (?, ?)")
                for (index, name) in names.enumerated() { try statement.execute(arguments: ["s\(index)", name]) }
            }
            try await sender.engine.syncNow()
            let sent = try await seconds { try await sender.attachments.transfer() }
            let uploaded = try await sender.pool.read { db in
                try Int.fetchOne(db, sql: "SELECT count(*) FROM tidemark_attachment WHERE state = 'uploaded'") ?? 0
            }
            guard uploaded == count else {
                throw BlobBenchFailure(description: "\(uploaded) of \(count) small files are uploaded")
            }
            return [Self.tell("up", Double(count) / sent, "files/s", atLeast: Self.leastRate)]
        }
    }
#endif
