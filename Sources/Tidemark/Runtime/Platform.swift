// Everything that differs between Apple's platforms and Linux stands here.
import Foundation
import GRDB
import TidemarkCore
import TidemarkWire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Whether this is built for a device that is mostly on a battery and a mobile network.
#if os(iOS) || os(watchOS) || os(tvOS) || os(visionOS)
    let isMobilePlatform = true
#else
    let isMobilePlatform = false
#endif

/// Whether a program has one process at a time, and none can look for those of others.
#if targetEnvironment(macCatalyst)
    let hasOneProcess = false
#else
    let hasOneProcess = isMobilePlatform
#endif

/// The app's version, where it is a bundle.
let bundleVersion = Bundle.main.object(forInfoDictionaryKey: "CFBundleShortVersionString") as? String

/// The device that the code runs on.
struct Platform: Environment {
    private static let start = ContinuousClock().now
    private static let generator = Locked(UUIDv7())

    var wallClock: Int64 { Date().milliseconds }
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

/// Makes a folder, kept out of backups and locked with the device as its owner says, where the system can do that.
func makeFolder(_ folder: URL, isBackedUp: Bool, isLocked: Bool) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    #if canImport(Darwin)
        var (folder, values) = (folder, URLResourceValues())
        values.isExcludedFromBackup = !isBackedUp
        try folder.setResourceValues(values)
    #endif
    #if os(iOS) || os(watchOS) || os(tvOS) || os(visionOS)
        let protection: FileProtectionType = isLocked ? .complete : .completeUntilFirstUserAuthentication
        try FileManager.default.setAttributes([.protectionKey: protection], ofItemAtPath: folder.path)
    #endif
}

/// Tells a file from another one that takes its place.
struct FileStamp: Hashable, Sendable {
    var number: UInt64
    var size: Int64
    /// When it was last written.
    var seconds: Int
    var nanoseconds: Int

    /// `nil` where there is no such file; a link is one of its own. Foundation would look up the owner's name, too.
    init?(of url: URL) {
        var found = stat()
        guard url.withUnsafeFileSystemRepresentation({ path in path.map { lstat($0, &found) == 0 } }) == true else {
            return nil
        }
        (number, size) = (UInt64(found.st_ino), Int64(found.st_size))
        #if canImport(Darwin)
            (seconds, nanoseconds) = (found.st_mtimespec.tv_sec, found.st_mtimespec.tv_nsec)
        #else
            (seconds, nanoseconds) = (found.st_mtim.tv_sec, found.st_mtim.tv_nsec)
        #endif
    }
}

/// A session for all requests of a transport, with every wait bounded.
final class HTTPSession: Sendable {
    /// The shortest wait, because Foundation on Linux drops parts of a second: half a second would be none.
    private static let shortestTimeout = Duration.seconds(1)
    /// The longest wait, a day, because Foundation on Linux counts milliseconds in an `Int` and traps where they do not
    /// fit.
    private static let longestTimeout = Duration.seconds(86_400)

    private let session: URLSession

    init(timeout: Duration) {
        let configuration = URLSessionConfiguration.ephemeral
        let seconds = Double(min(max(timeout, Self.shortestTimeout), Self.longestTimeout).wholeSeconds)
        configuration.timeoutIntervalForRequest = seconds
        configuration.timeoutIntervalForResource = seconds * 4
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCache = nil
        configuration.httpShouldSetCookies = false
        session = URLSession(configuration: configuration)
    }

    deinit { session.finishTasksAndInvalidate() }

    struct Answer: Sendable {
        var status: Int
        var headers: [String: String]
        var body: [UInt8]
    }

    /// - Throws: `URLError` where no answer came, and `CancellationError`.
    func send(_ method: String, _ url: URL, headers: [(String, String)], body: [UInt8]) async throws -> Answer {
        var request = URLRequest(url: url)
        request.httpMethod = method
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        if !body.isEmpty || method == "PUT" { request.httpBody = Data(body) }
        // Not `data(for:)`: on Linux, cancelling it waits for the session's queue with the lock of the Swift task
        // held, and that queue waits for the lock where it brings the answer (`URLLoadingTests.cancelled`).
        let (answers, continuation) = AsyncThrowingStream.makeStream(of: Answer.self)
        let task = session.dataTask(with: request) { data, response, error in
            if let response = response as? HTTPURLResponse, error == nil {
                continuation.yield(Answer(response, body: [UInt8](data ?? Data())))
            }
            continuation.finish(throwing: error ?? URLError(.badServerResponse))
        }
        task.resume()
        for try await answer in answers { return answer }
        // The stream ends by itself where its task is cancelled.
        task.cancel()
        throw CancellationError()
    }
}

extension HTTPSession.Answer {
    fileprivate init(_ response: HTTPURLResponse, body: [UInt8]) {
        var fields: [String: String] = [:]
        for (name, value) in response.allHeaderFields { fields["\(name)".lowercased()] = "\(value)" }
        self.init(status: response.statusCode, headers: fields, body: body)
    }
}

/// An answer that goes on, whose bytes are taken as they come. Each has a session of its own, since only a session's
/// delegate hears of bytes on all systems.
final class HTTPStream: NSObject, URLSessionDataDelegate {
    private enum Part {
        case head(HTTPURLResponse)
        case bytes([UInt8])
    }

    /// The most bytes that may wait for `receive`, and that a refusal's body may have; where there are more, the answer
    /// is given up.
    private static let limit = 1 << 20
    /// Without a byte for so long, in seconds, the answer has broken off. Servers say something every 15.
    private static let silence = 120.0

    private let continuation: AsyncThrowingStream<Part, any Error>.Continuation
    private let waiting = Locked(0)

    private init(_ continuation: AsyncThrowingStream<Part, any Error>.Continuation) {
        self.continuation = continuation
    }

    /// - Throws: `URLError` where no answer came or it broke off, what `receive` throws, and `CancellationError`.
    static func follow(
        _ method: String, _ url: URL, _ headers: [(String, String)],
        _ receive: @Sendable ([UInt8]) async throws -> Void
    ) async throws -> HTTPSession.Answer {
        var request = URLRequest(url: url)
        request.httpMethod = method
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = silence
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCache = nil
        configuration.httpShouldSetCookies = false
        let (parts, continuation) = AsyncThrowingStream.makeStream(of: Part.self)
        let stream = HTTPStream(continuation)
        let session = URLSession(configuration: configuration, delegate: stream, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        session.dataTask(with: request).resume()
        var (response, refusal): (HTTPURLResponse?, [UInt8]) = (nil, [])
        for try await part in parts {
            switch part {
            case .head(let head): response = head
            case .bytes(let bytes):
                stream.waiting.withLock { $0 -= bytes.count }
                if response?.statusCode == 200 { try await receive(bytes) } else { refusal += bytes }
                guard refusal.count <= limit else { throw URLError(.dataLengthExceedsMaximum) }
            }
        }
        try Task.checkCancellation()
        guard let response else { throw URLError(.badServerResponse) }
        return HTTPSession.Answer(response, body: refusal)
    }

    func urlSession(
        _: URLSession, dataTask _: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse { continuation.yield(.head(response)) }
        completionHandler(.allow)
    }

    func urlSession(_: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let total = waiting.withLock { waiting in
            waiting += data.count
            return waiting
        }
        guard total <= Self.limit else {
            continuation.finish(throwing: URLError(.dataLengthExceedsMaximum))
            return dataTask.cancel()
        }
        continuation.yield(.bytes([UInt8](data)))
    }

    func urlSession(_: URLSession, task _: URLSessionTask, didCompleteWithError error: (any Error)?) {
        continuation.finish(throwing: error)
    }
}
