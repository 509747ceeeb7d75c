import Tidemark
import TidemarkServer
import TidemarkWire

// What devices and the server say to each other of attachments' bytes (W104, W105).
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    private func part(_ message: Message) -> OracleFiles.Part? {
        guard let hash = message.request.path.split(separator: "/").last,
            let scope = message.request.query.first(where: { $0.name == "scope" }).flatMap({ Scope($0.value) })
        else { return nil }
        return OracleFiles.Part(
            place: Place(scope: scope.parent, hash: String(hash)), user: world.user(of: message.device))
    }

    private func device(_ message: Message) -> OracleFiles.Part? {
        part(message).map { OracleFiles.Part(place: $0.place, user: message.device) }
    }

    /// A device sends a request.
    func sent(_ message: Message) {
        guard message.isUpload, let name = device(message), files?.told[name] == true,
            world.server.blobs?.scopes[name.place.scope]?.blobs[name.place.hash] != nil
        else { return }
        check {
            throw Violation("A12 twice", "device \(message.device) sends \(name.place.hash.prefix(6)), which is there")
        }
    }

    /// The server is given a request.
    func arrives(_ message: Message, isSpoiled: Bool) {
        guard message.isUpload, let name = part(message) else { return }
        let end = message.rangeEnd ?? Int64(message.request.body.count)
        files?.reaches(end, of: name)
        guard isSpoiled else { return }
        files?.spoiled.insert(name)
        files?.everSpoiled.insert(name)
    }

    /// The server has answered.
    func answeredFile(_ message: Message, _ response: TransportResponse) {
        guard message.isFile, let name = part(message) else { return }
        if response.status != 200 { count("\(message.request.method) \(response.status)") }
        let what = "of \(name.place.hash.prefix(6))"
        check {
            switch (message.request.method, response.status) {
            case ("HEAD", 200): files?.uses[name.place] = World.beginning + world.time + world.server.clockOffset
            case ("HEAD", 404):
                let kept = response.header("Upload-Offset").flatMap { Int64($0) } ?? 0
                guard kept > files?.reach[name] ?? 0 else { return }
                throw Violation("A12 part", "the server has \(kept) bytes \(what) that nobody sent")
            case ("PUT", 422):
                // Without a range and bytes a device takes back what it sent.
                guard message.rangeEnd != nil, files?.spoiled.remove(name) == nil else { return }
                throw Violation("A12 mixed", "the server has mixed up bytes \(what)")
            default: break
            }
        }
    }

    /// A device gets an answer as the server gave it.
    func told(_ message: Message, _ response: TransportResponse) {
        guard message.request.method == "HEAD", message.isFile, let name = device(message) else { return }
        files?.told[name] = response.status == 200
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Message {
    /// Whether it is about the bytes of an attachment.
    var isFile: Bool { request.carriesBytes }
    var isUpload: Bool { isFile && request.method == "PUT" }

    /// Behind the last byte of an upload's part.
    fileprivate var rangeEnd: Int64? {
        request.headers["Content-Range"]?.split(separator: "/").first?.split(separator: "-").last
            .flatMap { Int64($0) }.map { $0 + 1 }
    }
}
