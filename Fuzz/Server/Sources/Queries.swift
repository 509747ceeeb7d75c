import Foundation
import Hummingbird
import Logging
import NIOCore
import NIOEmbedded
import TidemarkHummingbird
import TidemarkSQLite
import TidemarkServer

/// Query strings, on every route that reads one: the answer is a document, or a refusal that names the fault.
enum Queries {
    private static let routes = ["changes", "snapshot", "records/task", "digest", "declarations"]
    private static let logger = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }

    /// Nothing comes over it: a request has to have one.
    private static let channel = NIOAsyncTestingChannel()

    private static let responder: any HTTPResponder<SyncRequestContext> = {
        let router = Router(context: SyncRequestContext.self)
        let folder = FileManager.default.temporaryDirectory.appending(path: "tidemark-fuzz-\(UUID().uuidString)")
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let store = try SQLiteStore(path: folder.appending(path: "sync.sqlite").path)
            var limits = Limits()
            // One caller asks as fast as the machine can.
            limits.requestsPerSecond = 1_000_000_000
            let server = SyncServer(store: store, entities: [.state("task")], limits: limits)
            router.addRoutes(server.routes { _, _, _ in .readWrite(as: "ada") }, atPath: "/sync")
        } catch { fatalError("no server: \(error)") }
        return router.buildResponder()
    }()

    static let check: @Sendable ([UInt8]) async throws -> Void = { input in
        guard let first = input.first else { return }
        let query = String(decoding: input.dropFirst(), as: UTF8.self)
        let path = "/sync/\(routes[Int(first) % routes.count])?\(query)"
        let context = SyncRequestContext(
            source: ApplicationRequestContextSource(channel: channel, logger: logger))
        let head = HTTPRequest(method: .get, scheme: "http", authority: "localhost", path: path)
        let response = try await responder.respond(
            to: Request(head: head, body: RequestBody(buffer: ByteBuffer())), context: context)
        try hold([200, 400, 404, 409, 410].contains(response.status.code), "\(response.status) for \(path)")
    }
}
