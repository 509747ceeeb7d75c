#if Server
    import Foundation
    import HTTPTypes
    import Hummingbird
    import NIOCore
    import TidemarkCore
    import TidemarkFuzzing
    import TidemarkServer
    import TidemarkWire
    import Testing

    @testable import TidemarkHummingbird

    /// What stands in a request's first lines: query strings, tokens, and the headers that are read by hand.
    @Suite struct HeaderMutationTests {
        private static let wanted = ProcessInfo.processInfo.environment["TIDEMARK_FUZZ_INPUTS"].flatMap { Int($0) }

        private static func mutate(
            _ pool: [String], count: Int = 3000, _ body: (String) async throws -> Void
        ) async throws {
            var mutator = Mutator(seed: 1, pool: pool.map { Array($0.utf8) })
            for text in pool { try await body(text) }
            for _ in 0..<(wanted.map { $0 / 4 } ?? count) {
                try await body(String(decoding: mutator.input(), as: UTF8.self))
            }
        }

        @Test("A query that is changed anyhow is read in its bounds or refused")
        func queries() async throws {
            let pool = [
                "scope=w&since=T&limit=500", "scope=w:1&id=t1&id=%C3%A9&follow=list:task",
                "scope=w&fields=a,b&limit=-1",
                "scope=%77&limit=+1", "scope=w&at=%ff&every=9223372036854775808", "scope=w&&=&a&=b&scope",
            ]
            try await Self.mutate(pool) { text in
                let head = HTTPRequest(method: .get, scheme: "http", authority: "x", path: "/sync/changes?" + text)
                let request = Request(head: head, body: RequestBody(buffer: ByteBuffer()))
                do throws(Problem) {
                    let query = try SyncQuery(of: request)
                    #expect(Identifier.isScope(query.scope.name))
                    for name in ["since", "limit", "every", "at", "fields"] {
                        _ = query.texts(name)
                        guard let value = try query.text(name) else { continue }
                        if let number = try? query.number(name) { #expect(Int64(value) == number) }
                        guard Self.isPlain(text) else { continue }
                        let pairs = text.split(separator: "&").map { $0.split(separator: "=", maxSplits: 1) }
                        #expect(
                            pairs.contains { $0.first == name[...] && ($0.count > 1 ? $0[1] : "") == value }, "\(text)")
                    }
                } catch { #expect(error.code.status == 400, "\(text)") }
            }
        }

        /// Nothing to decode, and one way to take it apart.
        private static func isPlain(_ text: String) -> Bool {
            text.utf8.allSatisfy { (0x30...0x7a).contains($0) || $0 == UInt8(ascii: "&") }
                && text.split(separator: "&").allSatisfy { $0.filter { $0 == "=" }.count <= 1 }
        }

        /// Nobody gets in by changing a token, whatever he changes.
        @Test("A token that is changed anyhow lets nobody in")
        func alteredTokens() async throws {
            let good = try await LiveServer.token()
            let verifier = try await TokenVerifier(secret: LiveServer.secret)
            let parts = good.split(separator: ".").compactMap { Base64URL.decode(String($0)) }
            let pool = [good, good + "." + good, "a.b.c", "..", good.replacing(".", with: "..")]
            try await Self.mutate(pool) { text in
                guard await verifier.claims(of: text) != nil else { return }
                // The last letter of a part may hold bits that no byte has.
                let read = text.split(separator: ".").map { part in
                    let standard = part.replacing("-", with: "+").replacing("_", with: "/")
                    let padding = String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4)
                    return Data(base64Encoded: standard + padding).map { [UInt8]($0) }
                }
                #expect(read == parts, "\(text)")
            }
        }

        /// What is signed is ours, but it may be an older or newer program that signed it.
        @Test("Signed claims that are changed anyhow are read in their bounds or refused")
        func signedClaims() async throws {
            let verifier = try await TokenVerifier(secret: LiveServer.secret) {
                Date(timeIntervalSince1970: 1_700_000_000)
            }
            let headers = [
                #"{"alg":"HS256"}"#, #"{"alg":"HS256","typ":"JWT","kid":"1","x5c":["a"],"b64":false,"jwk":{}}"#,
            ]
            let payloads = [
                #"{"sub":"ada","exp":9999999999,"nbf":1.5,"scopes":{"w:*":"rw","x":"r"},"role":"service"}"#,
                #"{"sub":"ada","exp":1e308,"scopes":{"*":"rw","":"r","é":"rw"}}"#, #"{"sub":"","exp":-1,"scopes":{}}"#,
            ]
            var mutator = Mutator(seed: 2, pool: headers.map { Array($0.utf8) })
            try await Self.mutate(payloads) { payload in
                var header = Array(headers[mutator.below(2)].utf8)
                if mutator.below(3) == 0 { mutator.mutate(&header) }
                let body = Base64URL.encode(header) + "." + Base64URL.encode(Array(payload.utf8))
                let mark = SHA256.authenticate(Array(body.utf8), key: LiveServer.secret)
                guard let claims = await verifier.claims(of: body + "." + Base64URL.encode(mark)) else { return }
                #expect(!claims.subject.isEmpty && claims.expires.timeIntervalSince1970 > 1_700_000_000)
                for scope: Scope in ["w:1", "x", "y"] {
                    let isNamed = claims.scopes.keys.contains { $0 == scope.name || $0.utf8.last == UInt8(ascii: "*") }
                    if claims.access(to: scope).level != .none { #expect(isNamed, "\(payload)") }
                }
            }
        }

        @Test("Encodings and tags are found only where the header names them")
        func encodingsAndTags() async throws {
            let body = Array("a body of some bytes".utf8)
            let tag = EntityTag(of: body, as: .identity)
            let pool = [
                "gzip;q=0.5, br", "*;q=0, x-gzip", tag.text, "W/\(tag.text), \"a\"", "*", ",, \"\" ,\"", "q=;;gzip",
            ]
            try await Self.mutate(pool) { header in
                let text = header.filter { !$0.isWhitespace }
                switch ContentCoding.preferred(header) {
                case .gzip: #expect(text.contains("*") || text.lowercased().contains("gzip"))
                case .brotli: #expect(text.lowercased().contains("br"))
                case .identity: break
                }
                if tag.isNamed(in: header) { #expect(header.contains("*") || header.contains(tag.text), "\(header)") }
            }
        }
    }
#endif
