import TidemarkWire

extension FuzzTarget {
    static let messages = [
        FuzzTarget("request") { input in
            let request: ExchangeRequest
            do throws(JSONError) { request = try ExchangeRequest(from: input, operationLimit: 50) } catch {
                // Whatever is wrong, the caller is told in a document that it can read.
                let body = Problem(error).body()
                try hold(body.withUnsafeBytes { Problem(from: $0) } != nil, "a refusal cannot be read")
                return
            }
            try hold(request.operations.count <= 50, "more operations than may be")
            for sealed in request.operations { try roundTrip(sealed) }
        },
        FuzzTarget("verdict") { input in
            guard let (key, verdict) = read(input, { reader throws(JSONError) in try Verdict.read(from: &reader) })
            else { return }
            try hold(!key.lane.isEmpty && key.number > 0, "a verdict without a key")
            var stored = verdict
            // That it was told before is not the verdict's, but the answer's.
            stored.isReplayed = false
            let again = try Verdict(members: verdict.members())
            try hold(again == stored, "a stored verdict comes back as another one")
            try hold(again.members() == verdict.members(), "a verdict has two spellings")
        },
        FuzzTarget("socket") { input in
            guard let request = try? SocketRequest(from: input, limit: 5) else { return }
            switch request {
            case .subscribe(let names), .unsubscribe(let names):
                try hold(names.count <= 5, "more names than may be")
                let refused = names.map { SocketEvent.refused(scope: $0, Problem(.invalidIdentifier, $0)).json }
                try hold(
                    refused.allSatisfy { $0.withUnsafeBytes { Tree.isSkipped($0) } }, "a refusal is no JSON")
            case .authorize: break
            }
        },
        FuzzTarget("declarations") { input in
            guard let declarations = try? Declarations(from: input) else { return }
            let body = declarations.body()
            let again = try body.withUnsafeBytes { try Declarations(from: $0) }
            try hold(again == declarations && again.body() == body, "declarations come back as others")
        },
        FuzzTarget("problem") { input in
            guard let problem = Problem(from: input) else { return }
            let body = problem.body()
            let again = body.withUnsafeBytes { Problem(from: $0) }
            try hold(again == problem && again?.body() == body, "a problem comes back as another one")
        },
    ]
}

/// An operation that was read is stored and sent again as the same one.
private func roundTrip(_ sealed: ExchangeRequest.SealedOperation) throws {
    let operation = sealed.operation
    let again = try written(sealed.key, operation.sealedMembers())
    try hold(again.key == sealed.key, "an operation comes back under another key")
    // What an operation of its kind does not have is not sent again.
    var whole = operation.kind == .void ? Operation(.void) : operation
    if !whole.setsFields { whole.fields = .empty }
    if whole.kind != .patch { whole.patches = [] }
    try hold(again.operation == whole, "an operation comes back as another one")
    try hold(again.operation.canonicalBytes() == operation.canonicalBytes(), "the same operation has two prints")
    let third = try written(sealed.key, operation.canonicalBytes())
    try hold(third.operation.canonicalBytes() == operation.canonicalBytes(), "the print is another operation's")
}

private func written(_ key: OperationKey, _ members: [UInt8]) throws -> ExchangeRequest.SealedOperation {
    var writer = JSONWriter()
    writer.raw("{\"lane\":")
    writer.string(key.lane)
    writer.member("number", key.number)
    writer.raw(",")
    writer.raw(members)
    writer.raw("}")
    let (again, operation) = try readBack(writer.bytes) { reader throws(JSONError) in
        try Operation.read(from: &reader)
    }
    return ExchangeRequest.SealedOperation(key: again, operation: operation)
}
