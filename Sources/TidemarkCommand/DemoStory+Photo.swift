#if Server
    import Foundation
    import GRDB
    import Synchronization
    import Tidemark
    import TidemarkAsyncHTTPClient
    import TidemarkWire

    /// A photo goes from one device to another, over a wire that is cut in the middle.
    extension DemoStory {
        func sendPhoto(_ report: inout DemoReport) async throws {
            say("")
            say("10. A puts a photo of 8 MiB to a record; the wire is cut after 3 MiB")
            let photo = Data((0..<8 << 20).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 13) })
            let wire = BreakableTransport(try world.transport())
            let a = try await world.photoDevice("photos-a", wire)
            let b = try await world.photoDevice("photos-b", try world.transport())
            let reference = try await a.engine.attachments.add(photo)
            try await a.database.write { db in
                try db.execute(
                    sql: "INSERT INTO photo (id, image) VALUES ('p1', ?)", arguments: [reference.description])
            }
            try await a.engine.syncNow()
            wire.breaks(afterUploads: 3)
            do {
                try await a.engine.attachments.transfer()
                report.differences.append("the wire was not cut")
            } catch {}
            try await b.engine.syncNow()
            try? await b.engine.attachments.transfer()
            let early = try await b.engine.attachments.state(of: reference)
            say("     B has the record, and its app is told: \(early.map { "\($0)" } ?? "nothing")")
            wire.mend()
            await a.engine.wake()
            try await a.engine.attachments.transfer()
            let url = try await b.engine.attachments.fetch(reference)
            report.photoBytes = wire.uploaded
            if try Data(contentsOf: url) != photo { report.differences.append("the photo is not the same on B") }
            let size = Int64(photo.count).formatted(.byteCount(style: .memory))
            let sent = wire.uploaded.formatted(.byteCount(style: .memory))
            say("     A went on where it was: \(sent) for \(size); B shows it, byte for byte")
            try a.database.close()
            try b.database.close()
        }
    }

    extension DemoWorld {
        fileprivate typealias PhotoDevice = (database: DatabaseQueue, engine: SyncEngine)

        fileprivate func transport() throws -> AsyncHTTPClientTransport {
            guard let root = URL(string: url) else { throw URLError(.badURL) }
            return AsyncHTTPClientTransport(root) { token }
        }

        fileprivate func photoDevice(_ name: String, _ transport: any Transport) async throws -> PhotoDevice {
            let database = try open("\(name).sqlite")
            try await database.write { db in
                try db.execute(sql: "CREATE TABLE photo (id TEXT PRIMARY KEY NOT NULL, image TEXT)")
            }
            let engine = try SyncEngine(
                for: database, tables: [.table("photo", attachments: [.attachment("image", download: .onDemand)])],
                scopes: ["machine:2"], transport: transport,
                attachments: AttachmentConfiguration(folder: folder.appending(path: name)))
            return (database, engine)
        }
    }

    /// Lets a number of uploads through and fails until it is mended, as a network that goes away does.
    private final class BreakableTransport: Transport {
        private struct State {
            var rest: Int?
            var uploaded: Int64 = 0
        }

        private let inner: any Transport
        private let state = Mutex(State())

        init(_ inner: any Transport) { self.inner = inner }

        var uploaded: Int64 { state.withLock(\.uploaded) }

        func breaks(afterUploads count: Int) { state.withLock { $0.rest = count } }

        func mend() { state.withLock { $0.rest = nil } }

        func send(_ request: TransportRequest) async throws -> TransportResponse {
            try state.withLock { state in
                guard request.method == "PUT" else { return }
                if let rest = state.rest {
                    guard rest > 0 else { throw URLError(.networkConnectionLost) }
                    state.rest = rest - 1
                }
                state.uploaded += Int64(request.body.count)
            }
            return try await inner.send(request)
        }
    }
#endif
