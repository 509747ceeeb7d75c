#if Server
    import Foundation
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire
    import Testing

    /// What callers of the dialects lost, or would have, where nobody had looked.
    @Suite struct DialectRegressionTests {
        private func stamped(
            _ caller: PlainCaller, _ stamp: Int, _ items: String...
        ) async throws -> (items: [[String: Any]], stamp: Int) {
            let answer = try await caller.stamped(
                #"{"clientStamp":\#(stamp),"items":[\#(items.joined(separator: ","))]}"#)
            #expect(answer.status == 200, "\(answer.text)")
            return (answer.items, answer.member("clientStamp") as? Int ?? -1)
        }

        private func item(_ id: String, _ moment: Int64, _ content: String) -> String {
            #"{"entity":"word","id":"\#(id)","itemUpdateStamp":\#(moment),\#(content)}"#
        }

        @Test(
            "a caller that sends some fields of a record that others wrote since is told the others (D1, D3)",
            arguments: LiveStore.allCases)
        func partial(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let (ada, bob) = (try await server.caller(), try await server.caller("bob"))
                let begun = try await stamped(ada, 0, item("w1", DialectServer.start, #""data":{"a":1,"b":1}"#))
                #expect(begun.items.isEmpty)
                server.pass(1000)
                _ = try await bob.patch("/rest/word/w1", #"{"b":2}"#)
                server.pass(1000)
                let met = try await stamped(
                    ada, begun.stamp, item("w1", DialectServer.start + 1500, #""data":{"a":5}"#))
                #expect(met.items.map { $0["data"] as? [String: Int] } == [["a": 5, "b": 2]])
                // What nobody else has touched does not come back, sent in parts or not.
                server.pass(1000)
                let own = try await stamped(
                    ada, met.stamp, item("w1", DialectServer.start + 2500, #""data":{"a":6}"#),
                    item("w1", DialectServer.start + 2600, #""data":{"b":7}"#))
                #expect(own.items.isEmpty)
                // A device that begins has nothing of the record.
                server.pass(1000)
                let first = try await stamped(
                    bob, 0, item("w1", DialectServer.start + 3500, #""data":{"b":8}"#))
                #expect(first.items.map { $0["data"] as? [String: Int] } == [["a": 6, "b": 8]])
            }
        }

        @Test("where a person decides, no caller deletes unseen what stands", arguments: LiveStore.allCases)
        func manualDelete(kind: LiveStore) async throws {
            var word = EntityDeclaration("word")
            word.conflict = .manual
            try await DialectServer.run(kind, entities: [word]) { server in
                let ada = try await server.caller()
                let tag = try await ada.put("/rest/word/w1", #"{"a":1}"#).tag
                server.pass(1000)
                let told = try await stamped(ada, 0, item("w1", DialectServer.start + 500, #""deleted":true"#))
                #expect(told.items.map { $0["data"] as? [String: Int] } == [["a": 1]])
                let refused = try await ada.delete("/rest/word/w1")
                #expect(refused.status == 409 && refused.text.contains(#""a":1"#), "\(refused.text)")
                #expect(try await ada.delete("/rest/word/w1", ("If-Match", tag)).status == 204)
                #expect(try await ada.delete("/rest/word/w1").status == 204)
            }
        }

        @Test("a record is put back, and nothing is lost that was not shown (E7)", arguments: LiveStore.allCases)
        func hiddenFields(kind: LiveStore) async throws {
            var path = EntityPath("songs", of: "word")
            path.members = ["title": .init("name")]
            try await DialectServer.run(kind, paths: [path]) { server in
                let ada = try await server.caller()
                let fields = #"{"id":"own","lastModifiedAt":7,"name":"hidden","title":"x"}"#
                let push =
                    #"{"protocolVersion":1,"scope":"w","clientId":"device-0001","operations":[{"lane":"lane-0001","#
                    + #""number":1,"type":"upsert","entity":"word","id":"k","fields":\#(fields)}]}"#
                #expect(try await ada.caller.post("/sync", push).status == 200)
                for address in ["/rest/word/k", "/rest/songs/k"] {
                    let shown = try await ada.get(address)
                    let put = try await ada.put(address, shown.text)
                    #expect(put.status == 200 && put.tag == shown.tag, "\(put.text)")
                    #expect(try await ada.put(address, #"{"ID":"zz"}"#).status == 400)
                }
                let native = try await ada.caller.get("/sync/changes?scope=w")
                #expect(native.text.contains(#""lastModifiedAt":7"#) && native.text.contains(#""id":"own""#))
                #expect(native.text.contains(#""name":"hidden""#), "\(native.text)")
                // Nor is anything stored that nobody would be shown.
                #expect(try await ada.put("/rest/word/k", #"{"LastModifiedAt":5}"#).status == 200)
                #expect(try await ada.caller.get("/sync/changes?scope=w").text.contains(#""lastModifiedAt":7"#))
            }
        }

        @Test("tags in a condition are read as RFC 9110 writes them")
        func tags() async throws {
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                let tag = try await ada.put("/rest/word/w", #"{"a":1}"#).tag
                for right in [#""a,b", \#(tag)"#, #""",\#(tag)"#, ", \(tag) ,", "*", #"W/"x", \#(tag)"#] {
                    let put = try await ada.put("/rest/word/w", #"{"a":1}"#, ("If-Match", right))
                    #expect(put.status == 200, "\(right): \(put.text)")
                    #expect(try await ada.get("/rest/word/w", ("If-Match", right)).status == 200)
                }
                let blank = #"" \#(tag.dropFirst())"#
                for wrong in [#"*, "x""#, #"w/\#(tag)"#, "x", #""x"#, #""x" "y""#, blank] {
                    let put = try await ada.put("/rest/word/w", #"{"a":1}"#, ("If-Match", wrong))
                    #expect(put.status == 400, "\(wrong)")
                }
                let other = try await ada.get("/rest/word/w", ("If-Match", #""other""#))
                #expect(other.status == 412 && other.text.contains(#""a":1"#))
                #expect(try await ada.get("/rest/word/none", ("If-Match", "*")).status == 412)
            }
        }

        @Test("a list whose query is long goes on under an address that the server takes")
        func longQuery() async throws {
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                let value = String(repeating: "!", count: 6000)
                for number in 0..<3 { _ = try await ada.put("/rest/word/w\(number)", #"{"a":"\#(value)"}"#) }
                let answers = try await ada.listAll("/rest/word?a=\(value)&limit=1")
                #expect(answers.allSatisfy { $0.status == 200 })
                #expect(answers.flatMap(\.ids) == ["w0", "w1", "w2"])
            }
        }

        /// All that comes until the other side ends the connection.
        private func all(_ socket: Socket) async throws -> String {
            var text = ""
            while case let part = try await socket.read(), !part.isEmpty { text += part }
            return text
        }

        @Test("HEAD is answered like GET, and ends with its headers (RFC 9110, 9.3.2)")
        func head() async throws {
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                _ = try await ada.put("/rest/word/w", #"{"a":1}"#)
                let rest = "Host: x\r\nAuthorization: Bearer \(ada.caller.token ?? "")\r\n"
                for (path, status) in [("/health", 200), ("/rest/word/w?scope=w", 200), ("/nowhere/at/all", 404)] {
                    let socket = try Socket(port: server.live.port)
                    // What is asked behind it on the same connection gets its own answer.
                    try await socket.write(
                        "HEAD \(path) HTTP/1.1\r\n\(rest)\r\n"
                            + "GET /rest/word/w?scope=w HTTP/1.1\r\n\(rest)Connection: close\r\n\r\n")
                    let parts = try await all(socket).components(separatedBy: "\r\n\r\n")
                    try #require(parts.count == 3, "\(path): \(parts)")
                    #expect(parts[0].hasPrefix("HTTP/1.1 \(status) "), "\(parts[0])")
                    #expect(parts[1].hasPrefix("HTTP/1.1 200 "))
                    #expect(parts[2].hasPrefix(#"{"id":"w","a":1"#))
                }
            }
        }

        @Test("a caller that asks whether to send a body is told to (RFC 9110, 10.1.1), or refused at once")
        func expectation() async throws {
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                let body = #"{"a":1}"#
                for (scope, isGranted) in [("w", true), ("other", false)] {
                    let socket = try Socket(port: server.live.port)
                    try await socket.write(
                        "PUT /rest/word/w?scope=\(scope) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n"
                            + "Content-Type: application/json\r\nExpect: 100-continue\r\nConnection: close\r\n"
                            + "Authorization: Bearer \(ada.caller.token ?? "")\r\n\r\n")
                    let first = try await socket.read()
                    if isGranted {
                        #expect(first.hasPrefix("HTTP/1.1 100 "), "\(first)")
                        try await socket.write(body)
                        #expect(try await all(socket).hasPrefix("HTTP/1.1 201 "))
                    } else {
                        #expect(first.hasPrefix("HTTP/1.1 403 ") || first.hasPrefix("HTTP/1.1 100 "), "\(first)")
                    }
                }
            }
        }
    }
#endif
