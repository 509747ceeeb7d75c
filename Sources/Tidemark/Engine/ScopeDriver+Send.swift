import GRDB
import TidemarkCore
import TidemarkWire

// MARK: - An exchange's request

extension ScopeDriver {
    func send(
        _ exchange: Exchange, orElse again: () async throws -> SyncMachine.Event?
    ) async throws -> SyncMachine.Event? {
        lane = exchange.lane
        if exchange.isPull { try await fetch(exchange) }
        let limit = sizing.limit
        let response: TransportResponse
        do { response = try await sendSealing(exchange) } catch {
            sizing.failed()
            // A failure at once is for want of a network, and says nothing about the size of the batch.
            if requestTime >= Self.slow, exchange.keys.count > 0 { batching.failed(at: exchange.keys.count) }
            throw error
        }
        noteSent(exchange)
        if response.status != 200 {
            let failure = Failure(response, scope: scope)
            if isMadeSmaller(exchange, failure, status: response.status) { return try await again() }
            if response.status == 413 {
                try await refuse(exchange)
            } else if exchange.keys.count > 0, failure.isOurs || failure.isOfRights, failure.kind.isRefusal {
                refusal = PushRefusal(failure, of: exchange, after: refusal, now: now)
                // A token that is refused for a push is refused for a pull too.
                if failure.kind == .needsApp { return try await again() }
            }
        }
        let answer = try exchange.answer(response)
        if exchange.keys.count > 0 { refusal = nil }
        telling.answered(exchange.report, now: now)
        resizeBatch(answer.results.count, of: exchange.keys.count)
        await received(.exchange(exchange, answer), response)
        sizing.received(
            rows: answer.page?.hasMore == true ? limit : 0, bytes: response.body.count, milliseconds: requestTime)
        return .answered
    }

    /// Sends the request, and seals what goes behind it meanwhile.
    private func sendSealing(_ exchange: Exchange) async throws -> TransportResponse {
        let isSent = early.response?.request == exchange.request
        async let sealed = isSent ? early.sealed : sealNext(behind: exchange)
        let began = sentAt(exchange.request)
        do {
            let response = try await send(exchange.request)
            requestTime = now - began
            early = Early(sealed: await sealed)
            return response
        } catch {
            requestTime = now - began
            throw error
        }
    }

    /// A request that has taken so long, in milliseconds, was cut on its way, and not refused one.
    private static let slow: Int64 = 1_000

    func received(_ answer: Answered, _ response: TransportResponse) async {
        await schemaCache.heard(fingerprint: response.header(ProtocolVersion.declarationsHeader))
        current = (answer, response.wait("Backoff"))
    }
}
