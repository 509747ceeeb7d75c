package import Foundation

extension TransportRequest {
    /// The address of the request, under a server's root URL.
    ///
    /// - Throws: `URLError` where the root, the path and the query make no URL.
    package func url(under root: URL) throws -> URL {
        guard var parts = URLComponents(url: root, resolvingAgainstBaseURL: false),
            let path = URLComponents(string: self.path)?.percentEncodedPath
        else { throw URLError(.badURL) }
        let base = parts.percentEncodedPath
        parts.percentEncodedPath = (base.hasSuffix("/") ? String(base.dropLast()) : base) + path
        if !query.isEmpty {
            parts.queryItems = query.map { URLQueryItem(name: $0.name, value: $0.value) }
            // Servers may take a plus for a space, and `URLComponents` leaves it as it is.
            parts.percentEncodedQuery = parts.percentEncodedQuery?.replacing("+", with: "%2B")
        }
        guard let url = parts.url else { throw URLError(.badURL) }
        return url
    }
}
