// Everything that differs between Apple's platforms and Linux stands here.
import Foundation
import GRDB
import TidemarkCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Whether this is built for a device that is mostly on a battery and a mobile network.
#if os(iOS) || os(watchOS) || os(tvOS) || os(visionOS)
    let isMobilePlatform = true
#else
    let isMobilePlatform = false
#endif

/// The device that the code runs on.
struct Platform: Environment {
    private static let start = ContinuousClock().now
    private static let generator = Locked(UUIDv7())

    var wallClock: Int64 { Int64((Date().timeIntervalSince1970 * 1000).rounded()) }
    var uptime: Instant { Instant(milliseconds: (ContinuousClock().now - Self.start).milliseconds) }
    func random() -> UInt64 { UInt64.random(in: .min ... .max) }
    func nextUUID() -> [UInt8] {
        let moment = wallClock
        return Self.generator.withLock { $0.next(at: moment, random: (random(), random())) }
    }
    func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }

    func use<Result: Sendable>(
        _ writer: any DatabaseWriter, _ access: FileAccess, at _: WritePoint?,
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        switch access {
        case .read: try await writer.unsafeRead { db in try db.consistently(body) }
        case .write: try await writer.writeWithoutTransaction(body)
        }
    }

    func watchEdits(
        of writer: any DatabaseWriter, _ notify: @escaping @Sendable () -> Void
    ) -> AnyDatabaseCancellable {
        writer.onEdits(notify)
    }
}

/// A session for all requests of a transport, with every wait bounded.
final class HTTPSession: Sendable {
    private let session: URLSession

    init(timeout: Duration) {
        let configuration = URLSessionConfiguration.ephemeral
        let seconds = Double(timeout.components.seconds)
        configuration.timeoutIntervalForRequest = seconds
        configuration.timeoutIntervalForResource = seconds * 4
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCache = nil
        configuration.httpShouldSetCookies = false
        session = URLSession(configuration: configuration)
    }

    deinit { session.finishTasksAndInvalidate() }

    struct Answer {
        var status: Int
        var headers: [String: String]
        var body: [UInt8]
    }

    func send(_ method: String, _ url: URL, headers: [(String, String)], body: [UInt8]) async throws -> Answer {
        var request = URLRequest(url: url)
        request.httpMethod = method
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        if !body.isEmpty { request.httpBody = Data(body) }
        let (data, response) = try await session.data(for: request)
        guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        var fields: [String: String] = [:]
        for (name, value) in response.allHeaderFields { fields["\(name)".lowercased()] = "\(value)" }
        return Answer(status: response.statusCode, headers: fields, body: [UInt8](data))
    }
}
