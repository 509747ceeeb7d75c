import Tidemark
import TidemarkTesting

/// A wire that loses requests, loses answers, repeats requests and cuts answers, by seed.
actor FaultyTransport: Transport {
    private var inner: any Transport
    private var generator: SplitMix64
    private(set) var isFaulty = true
    /// How often of a hundred times the server cannot go on from where the device stands.
    private var expiry = 0

    struct Lost: Error {}

    init(_ inner: any Transport, seed: UInt64) {
        self.inner = inner
        generator = SplitMix64(world: seed)
    }

    func endFaults() { isFaulty = false }
    func connect(to inner: any Transport) { self.inner = inner }
    func expire(_ percent: Int) { expiry = percent }

    /// What a server says that has forgotten what it would need.
    private func expired(_ request: TransportRequest) -> TransportResponse? {
        let code: String
        switch request.path {
        case "/sync": code = "checkpoint_expired"
        case "/sync/snapshot" where request.query.contains { $0.name == "snapshotToken" }: code = "snapshot_expired"
        default: return nil
        }
        guard generator.chance(expiry) else { return nil }
        let body = #"{"status":410,"code":"\#(code)","detail":"","reason":"retention"}"#
        return TransportResponse(
            status: 410, headers: ["Content-Type": "application/problem+json"], body: Array(body.utf8))
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        guard isFaulty else { return try await inner.send(request) }
        if generator.chance(15) { throw Lost() }
        if expiry > 0, let expired = expired(request) { return expired }
        if generator.chance(15) { _ = try await inner.send(request) }
        var response = try await inner.send(request)
        if generator.chance(15) { throw Lost() }
        if generator.chance(10), !response.body.isEmpty {
            response.body = Array(response.body.prefix(Int.random(in: 0..<response.body.count, using: &generator)))
        }
        return response
    }
}
