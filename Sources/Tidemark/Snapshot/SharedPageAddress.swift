import TidemarkWire

/// Where a page of a snapshot is, as a server says that lets caches keep it (W91).
struct SharedPageAddress: Hashable, Sendable {
    var path: String
    /// The snapshot that the page has to be of.
    var token: String

    /// - Returns: `nil` for an answer of any other kind.
    init?(_ response: TransportResponse, scope: Scope) {
        guard response.status == 200, response.body.count <= PageAddress.answerBytes,
            let parts = try? response.body.reading({ (reader: inout JSONReader) throws(JSONError) -> Parts in
                try Parts(from: &reader)
            }),
            parts.scope == scope.name, let token = parts.token, let path = parts.address,
            // The address must be a token below the known prefix: what answered must not choose any other path.
            path.hasPrefix(PageAddress.prefix),
            Base64URL.decode(String(path.dropFirst(PageAddress.prefix.count)))?.isEmpty == false
        else { return nil }
        self.path = path
        self.token = token
    }

    /// The request for the page. It says nothing of the device or its user, so that a cache may answer it.
    var request: TransportRequest {
        var request = TransportRequest(
            path: path, headers: [ProtocolVersion.header: String(ProtocolVersion.current)])
        request.carriesToken = false
        return request
    }

    private struct Parts {
        var scope: String?
        var token: String?
        var address: String?

        init(from reader: inout JSONReader) throws(JSONError) {
            try reader.enterObject()
            while let name = try reader.nextMember() {
                switch reader.string(name) {
                case "scope": scope = try reader.readString()
                case "snapshotToken": token = try reader.readString()
                case "address": address = try reader.readString()
                default: try reader.skip()
                }
            }
            try reader.finish()
        }
    }
}
