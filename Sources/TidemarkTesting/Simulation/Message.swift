import Tidemark
import TidemarkServer
import TidemarkWire

/// A request or an answer that is under way.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct Message {
    var number: Int
    var device: Int
    var request: TransportRequest
    /// The server's answer, on its way back.
    var response: TransportResponse?
    /// Who waits for it; `nil` where nobody does any more, or never did.
    var continuation: CheckedContinuation<TransportResponse, any Error>?

    /// What the question was, apart from who asks when.
    var question: String {
        "\(device) \(request.method) \(request.path) \(request.query.map { "\($0.name)=\($0.value)" })"
            + (request.headers["Range"] ?? "")
    }
}

/// Thrown to a device whose message was lost.
struct ConnectionLost: Error {}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension World {
    func send(_ request: TransportRequest, from process: SimulatedProcess) async throws -> TransportResponse {
        let number = nextNumber()
        note("\(process.device) sends \(request.path)", request.body)
        if request.path == "/sync/digest" { comparisonCount += 1 }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                let message = Message(
                    number: number, device: process.device, request: request, continuation: continuation)
                oracle?.sent(message)
                messages.append(message)
            }
        } onCancel: {
            abandon(number)
        }
    }

    /// Nobody waits for the answer any more; the request is under way all the same.
    private func abandon(_ number: Int) {
        guard let index = messages.firstIndex(where: { $0.number == number }) else { return }
        messages[index].continuation?.resume(throwing: CancellationError())
        messages[index].continuation = nil
    }

    /// What becomes of the message at a place.
    func pass(_ place: Int, _ fate: Step.Fate) {
        guard !messages.isEmpty else { return }
        let message = messages.remove(at: place % messages.count)
        note("\(message.device) \(message.response == nil ? "request" : "answer") \(fate)")
        if let response = message.response { answer(message, response, fate) } else { ask(message, fate) }
        quiesce()
    }

    private func ask(_ message: Message, _ fate: Step.Fate) {
        switch fate {
        case .isCut(let thousandths) where message.isUpload:
            message.continuation?.resume(throwing: ConnectionLost())
            var rest = message
            rest.continuation = nil
            deliver(rest, cutAfter: message.request.body.count * thousandths / 1000)
        case .isReplaced where message.isUpload && !message.request.body.isEmpty:
            var spoiled = message
            spoiled.request.body = message.request.body.map { ~$0 }
            deliver(spoiled, isSpoiled: true)
        case .isLost, .isCut, .isReplaced:
            message.continuation?.resume(throwing: ConnectionLost())
        case .isRepeated:
            var copy = message
            (copy.number, copy.continuation) = (nextNumber(), nil)
            messages.append(copy)
            deliver(message)
        case .arrives, .isOld:
            deliver(message)
        }
    }

    /// The server works on a request; its answer is under way then.
    private func deliver(_ message: Message, cutAfter cut: Int? = nil, isSpoiled: Bool = false) {
        oracle?.arrives(message, isSpoiled: isSpoiled)
        let transport = InProcessTransport(to: server.node(message.number)) { [self] scope in
            access(of: message.device, to: scope)
        }
        let isDown = server.takeFailure()
        Task(executorPreference: executor) {
            var answered = message
            if isDown {
                answered.response = Self.unavailable
            } else {
                do {
                    let response = try await transport.send(message.request, cutAfter: cut)
                    if self.server.life.isOver { return self.unanswered(message) }
                    answered.response = response
                    self.oracle?.answered(message, response)
                    self.oracle?.answeredFile(message, response)
                } catch {
                    if self.server.life.isOver { return self.unanswered(message) }
                    self.oracle?.serverFailed(error)
                    answered.response = Self.broken
                }
            }
            self.note("answer to \(message.device)", answered.response?.body ?? [])
            self.messages.append(answered)
        }
    }

    /// The server has died over it.
    private func unanswered(_ message: Message) {
        serverDied()
        message.continuation?.resume(throwing: ConnectionLost())
    }

    private func answer(_ message: Message, _ response: TransportResponse, _ fate: Step.Fate) {
        switch fate {
        case .arrives, .isRepeated:
            answers[message.question, default: []].append(response)
            oracle?.told(message, response)
            if response.status == 200, ["/sync", "/sync/snapshot"].contains(message.request.path) {
                devices[message.device].process?.hasAnswer = true
            }
            message.continuation?.resume(returning: response)
        case .isOld where message.isFile && message.request.method != "GET":
            // Nobody keeps these.
            oracle?.told(message, response)
            message.continuation?.resume(returning: response)
        case .isReplaced where message.isFile && !response.body.isEmpty && draw() % 2 == 0:
            var response = response
            response.body = response.body.map { ~$0 }
            message.continuation?.resume(returning: response)
        case .isLost: message.continuation?.resume(throwing: ConnectionLost())
        case .isCut(let thousandths):
            var response = response
            response.body = Array(response.body.prefix(response.body.count * thousandths / 1000))
            message.continuation?.resume(returning: response)
        case .isReplaced:
            message.continuation?.resume(
                returning: TransportResponse(
                    status: 200, headers: ["Content-Type": "text/html"], body: Array("<html>Log in</html>".utf8)))
        case .isOld:
            let former = answers[message.question] ?? [response]
            message.continuation?.resume(returning: former[Int(draw() % UInt64(former.count))])
        }
    }

    private static let unavailable = problem(Problem(.unavailable, "The server is not ready."))
    /// What a server says that has met an error of its own.
    private static let broken = problem(Problem(.internalError, "The server failed."))

    private static func problem(_ problem: Problem) -> TransportResponse {
        TransportResponse(
            status: problem.code.status, headers: ["Content-Type": Problem.contentType], body: problem.body())
    }
}
