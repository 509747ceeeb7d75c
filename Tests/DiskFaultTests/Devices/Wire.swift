import Tidemark
import TidemarkServer
import TidemarkTesting
import TidemarkWire

/// Where the server is just now, which scopes its tokens grant, and what came out of it that no host expects.
actor Switchboard {
    private var server: (any Transport)?
    private var withdrawn: Set<Scope> = []
    /// Errors that are neither an answer nor a store that is unavailable: a host makes a 500 of them.
    private(set) var surprises: [String] = []

    /// Answers that send a device back to a snapshot.
    private(set) var refusals: [String] = []

    struct Unreachable: Error {}

    func connect(to server: SyncServer) {
        self.server = InProcessTransport(to: server) { try await self.access(to: $0) }
    }

    func withdraw(_ scope: Scope) { withdrawn.insert(scope) }
    func grant(_ scope: Scope) { withdrawn.remove(scope) }
    func grantAll() { withdrawn = [] }

    private func access(to scope: Scope) throws -> Access {
        guard !withdrawn.contains(scope) else { throw Problem(.scopeForbidden, "Not granted.") }
        return .readWrite(as: "ada")
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        guard let server else { throw Unreachable() }
        do {
            let response = try await server.send(request)
            if response.status == 410 { refusals.append(String(decoding: response.body, as: UTF8.self)) }
            return response
        } catch {
            // A device that stops has hung up.
            if !(error is CancellationError) { surprises.append("\(request.method) \(request.path): \(error)") }
            throw error
        }
    }
}

/// One device's wire: sends are counted, and go wrong where that is ordered.
actor Wire: Transport {
    /// What becomes of a send.
    enum Loss: String, CaseIterable {
        /// The request never reaches the server.
        case request
        /// The server has done it, and nobody hears.
        case answer
        /// The answer breaks off in the middle.
        case cut
        /// The request arrives twice.
        case repeated
    }

    private let board: Switchboard
    private(set) var sends = 0
    private var orders: [Int: Loss] = [:]
    private var next: Loss?

    struct Lost: Error {}

    init(to board: Switchboard) { self.board = board }

    /// The n-th send from now.
    func lose(_ loss: Loss, at n: Int) { orders[sends + n] = loss }

    /// The next exchange or push; `nil`: none.
    func loseNext(_ loss: Loss?) { next = loss }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        sends += 1
        var loss = orders.removeValue(forKey: sends)
        if request.method == "POST", let ordered = next {
            loss = ordered
            next = nil
        }
        switch loss {
        case .request: throw Lost()
        case .repeated: _ = try await board.send(request)
        case .answer, .cut, nil: break
        }
        var response = try await board.send(request)
        if loss == .answer { throw Lost() }
        if loss == .cut { response.body = Array(response.body.prefix(response.body.count / 2)) }
        return response
    }
}
