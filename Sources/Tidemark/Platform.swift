// Everything that differs between Apple's platforms and Linux stands here.
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Whether this is built for a device that is mostly on a battery and a mobile network.
#if os(iOS) || os(watchOS) || os(tvOS) || os(visionOS)
    let isMobilePlatform = true
#else
    let isMobilePlatform = false
#endif

/// Random bits for lanes, client ids and jitter.
func randomHex(bytes count: Int) -> String {
    var generator = SystemRandomNumberGenerator()
    var text = ""
    for _ in 0..<count {
        let byte = UInt8.random(in: .min ... .max, using: &generator)
        text += String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }
    return text
}

/// This file's name among a user's devices.
func randomClientID() -> String { UUID().uuidString.lowercased() }

/// Milliseconds since 1970, for people to read; no rule depends on it.
func wallClockMilliseconds() -> Int64 { Int64((Date().timeIntervalSince1970 * 1000).rounded()) }

/// One session for all requests of a transport, with every wait bounded.
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
