#if Server
    import HTTPTypes
    import TidemarkCore
    import TidemarkFuzzing
    import TidemarkGzip
    import TidemarkWire

    /// One request as it reaches the router.
    struct GrownRequest {
        var method = HTTPRequest.Method.get
        var path = ""
        var headers: HTTPFields = [:]
        var body: [UInt8] = []

        /// Enough to send it again.
        var summary: String {
            let fields = headers.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
            return "\(method) \(path)\n\(fields)\n\n\(String(decoding: body.prefix(4000), as: UTF8.self))"
        }
    }

    /// Grows requests that are valid but for a few things. What answers have taught it (tokens, epochs) it uses again.
    struct RequestGrammar {
        var dice: Mutator
        var bodies: BodyGrammar
        /// What stands behind `Bearer`; the first one may do everything.
        let tokens: [String]
        var learned = LearnedTokens()

        private static let routes: [(HTTPRequest.Method, String, [String])] = [
            (.post, "/sync", []), (.post, "/sync/push", []), (.post, "/sync", []),
            (.get, "/sync/changes", ["since", "limit", "order", "patches", "partial"]),
            (.get, "/sync/snapshot", ["limit", "snapshotToken", "pageCursor", "entity", "fields"]),
            (.get, "/sync/records/task", ["id", "id", "follow", "since"]), (.get, "/sync/records/note", ["id"]),
            (.get, "/sync/digest", ["at", "entity", "after", "through", "every", "field", "field"]),
            (.get, "/sync/declarations", []), (.get, "/health", []),
            (.get, "/rest/task", ["limit", "cursor", "title"]), (.get, "/rest/task/t1", []),
            (.put, "/rest/task/t1", []), (.put, "/rest/audit/t2", []), (.patch, "/rest/note/t1", []),
            (.delete, "/rest/task/t2", []), (.get, "/task/delta", ["limit", "cursor"]), (.post, "/sync/stamped", []),
        ]
        private static let plainBodies = [
            #"{"title":"a","body":null}"#, #"{"id":"t1","lastModifiedAt":5,"title":"b","list":1.5}"#, "{}", "[]",
            #"{"clientStamp":0}"#,
            #"{"clientStamp":1000,"items":[{"entity":"task","id":"t1","itemUpdateStamp":5,"data":{"title":"c"}}]}"#,
            #"{"clientStamp":9e9,"items":[{"entity":"note","id":"t2","itemUpdateStamp":90071992547,"deleted":true}]}"#,
        ]
        private static let methods: [HTTPRequest.Method] = [
            .get, .head, .post, .put, .patch, .delete, .options, .trace, .connect,
        ]
        private static let values = [
            "w", "x", "1", "5", "0", "-1", "5000", "5001", "9223372036854775807", "9223372036854775808",
            "-9223372036854775808", "1e3", "%2B1", "t1", "t2", "note", "task", "audit", "order", "hidden", "title,body",
            "list:task", ":", "a:", "priority", "log", "true", "", "%00", "%ff", "%", "%zz", "%ed%a0%80", "a%20b", "é",
            "%C3%A9", "e%CC%81", "%E2%84%AA", "%F0%9F%98%80", "+", "&", "=", "local-1",
            String(repeating: "a", count: 2000),
            String(repeating: ",", count: 300), "%0D%0AX:%20y",
        ]

        private static let valid = [
            "order": ["priority", "log"], "patches": ["true"], "partial": ["true"], "entity": ["task", "note"],
            "fields": ["title", "title,body"],
            "follow": ["list:task", "title:note"], "field": ["title", "body"],
        ]

        mutating func request() -> GrownRequest {
            let (method, path, names) = dice.any(Self.routes)
            var request = GrownRequest(method: method, path: path)
            if dice.below(20) == 0 { request.method = dice.any(Self.methods) }
            if dice.below(20) == 0 { request.path = broken(path) }
            let isPlain = path.hasPrefix("/rest") || path == "/sync/stamped" || path.hasSuffix("/delta")
            if method == .get || isPlain { request.path += query(names) }
            headers(of: &request)
            if isPlain { plainHeaders(of: &request) }
            if isPlain, method != .get, dice.below(10) > 0 {
                plainBody(of: &request)
            } else if method == .post || dice.below(20) == 0 {
                body(of: &request)
            }
            return request
        }

        private mutating func broken(_ path: String) -> String {
            var bytes = Array((path + dice.any(["/", "//", "/..", "/%2e%2e", "%00", "/%ff", "?", "#", ";", "*"])).utf8)
            if dice.below(2) == 0 { dice.mutate(&bytes) }
            return String(decoding: bytes, as: UTF8.self)
        }

        private mutating func query(_ names: [String]) -> String {
            var items = dice.below(15) == 0 ? [] : ["scope=\(dice.below(20) == 0 ? dice.any(Self.values) : "w")"]
            for name in names where dice.below(2) == 0 { items.append("\(name)=\(value(of: name))") }
            if dice.below(30) == 0, let item = items.randomElement(using: &dice) { items.append(item) }
            if dice.below(20) == 0 { items.append(dice.any(Self.values)) }
            let text = "?" + items.joined(separator: dice.below(30) == 0 ? "&&" : "&")
            guard dice.below(20) == 0 else { return text }
            var bytes = Array(text.utf8)
            dice.mutate(&bytes)
            return String(decoding: bytes, as: UTF8.self)
        }

        private mutating func value(of name: String) -> String {
            if ["since", "snapshotToken", "pageCursor", "at", "cursor"].contains(name), dice.below(20) > 0 {
                return learned.token(of: name, with: &dice)
            }
            if ["limit", "every"].contains(name), dice.below(8) > 0 { return String(1 + dice.below(5)) }
            return dice.below(3) == 0 ? dice.any(Self.values) : dice.any(Self.valid[name] ?? ["t1", "t2", "%C3%A9"])
        }

        private mutating func headers(of request: inout GrownRequest) {
            if dice.below(30) > 0 {
                let scheme = dice.below(40) == 0 ? dice.any(["Basic", "bearer", "Bearer Bearer", ""]) : "Bearer"
                var token = Array((dice.below(12) == 0 ? dice.any(tokens) : tokens.first ?? "").utf8)
                if dice.below(30) == 0 { dice.mutate(&token) }
                request.headers[.authorization] = "\(scheme) \(String(decoding: token, as: UTF8.self))"
            }
            if dice.below(3) == 0 {
                request.headers[.acceptEncoding] = dice.any(["gzip", "gzip;q=0", "*", "br, gzip;q=x", "br"])
            }
            if dice.below(10) == 0 {
                request.headers[.ifNoneMatch] = dice.any(["*", "\"a\"", "W/\"a", "\"", ",,\"\""])
            }
            if dice.below(40) == 0, let name = HTTPField.Name("Tidemark-Protocol") {
                request.headers[name] = dice.any(["1", "2", "", "1.0", "99999999999999999999", "+1"])
            }
            if dice.below(5) == 0, let name = HTTPField.Name("Tidemark-Client") {
                request.headers[name] = dice.any(["device-01", "device-02", "device-00", "short", ""])
            }
        }

        private mutating func plainHeaders(of request: inout GrownRequest) {
            let tags = ["*", "\"1-0\"", "\"\"", "W/\"1\"", "x", "\"a\", \"b-gzip\""]
            if dice.below(6) == 0 { request.headers[.ifMatch] = dice.any(tags) }
            if dice.below(6) == 0 { request.headers[.ifNoneMatch] = dice.any(tags) }
            if dice.below(4) == 0, let name = HTTPField.Name("Idempotency-Key") {
                request.headers[name] = dice.any(["k1", "k2", String(repeating: "k", count: 300)])
            }
            if dice.below(3) == 0, let name = HTTPField.Name("x-apiomat-delta") {
                var text = Array(
                    dice.any(["0", "\"1464946487123\"", "9223372036854775807", #"{"t1":"1","x":2}"#, "{}"]).utf8)
                if dice.below(4) == 0 { dice.mutate(&text) }
                request.headers[name] = String(decoding: text, as: UTF8.self)
            }
        }

        private mutating func plainBody(of request: inout GrownRequest) {
            request.body = Array(dice.any(Self.plainBodies).utf8)
            if dice.below(6) == 0 { for _ in 0...dice.below(3) { dice.mutate(&request.body) } }
            request.headers[.contentType] = "application/json"
        }

        private mutating func body(of request: inout GrownRequest) {
            request.body = bodies.body(with: &dice, epochs: learned.texts("epoch"), checkpoints: learned.texts("since"))
            if dice.below(12) == 0 { for _ in 0...dice.below(3) { dice.mutate(&request.body) } }
            switch dice.below(30) {
            case 0: request.body = Array(String(repeating: dice.any(["[", "{\"a\":", " "]), count: 5000).utf8)
            case 1: request.headers[.contentEncoding] = dice.any(["br", "gzip, gzip", "GZIP", "identity", "deflate"])
            case 2...6:
                request.body = Gzip.compress(request.body)
                request.headers[.contentEncoding] = "gzip"
                if dice.below(3) == 0 { dice.mutate(&request.body) }
            case 7: request.headers[.contentLength] = dice.any(["-1", "99999999999", "0", "x"])
            default: break
            }
            if dice.below(20) > 0 { request.headers[.contentType] = "application/json" }
            if dice.below(40) == 0 {
                request.headers[.contentType] = dice.any(["text/plain", "application/JSON ; x", ""])
            }
        }
    }
#endif
