import Testing

@testable import TidemarkWire

@Suite("Messages")
struct MessageTests {
    private func request(_ text: String) throws -> ExchangeRequest {
        try Array(text.utf8).withUnsafeBytes { try ExchangeRequest(from: $0, operationLimit: 3) }
    }

    private func path(of text: String) -> String? {
        do {
            _ = try request(text)
            return nil
        } catch {
            return (error as? JSONError)?.path
        }
    }

    @Test("A member given twice is refused where nobody knows it, too (W1)")
    func unknownTwice() {
        #expect(path(of: #"{"scope":"s","clientId":"client-01","new":{"a":[{"b":1,"c":2,"b":3}]}}"#) == "new.b")
        #expect(path(of: #"{"scope":"s","clientId":"client-01","new":{"a":[{"b":1,"c":2}],"b":3}}"#) == nil)
    }

    @Test("The refusal of a list that is too long says how much is taken")
    func limits() {
        func detail(_ members: String) -> String? {
            do {
                _ = try request(#"{"scope":"s","clientId":"client-01",\#(members)}"#)
                return nil
            } catch { return (error as? JSONError).map { Problem($0).detail } }
        }
        let operation = #"{"lane":"lane-0001","number":1,"type":"delete","entity":"t","id":"1"}"#
        let operations = Array(repeating: operation, count: 4).joined(separator: ",")
        #expect(
            detail(#""operations":[\#(operations)]"#)
                == "In `operations`: more than a request may hold; 3 are taken.")
        let lanes = (0...1000).map { #""lane-\#(10_000 + $0)":1"# }.joined(separator: ",")
        #expect(detail(#""acked":{\#(lanes)}"#)?.hasSuffix("than one may have; 1000 are taken.") == true)
    }

    @Test("A sealed operation is read back as it was written")
    func operationRoundTrip() throws {
        var operation = Operation(.upsert, entity: "task", id: RecordID("t\"1"))
        operation.baseVersion = 10
        operation.baseNumber = 4
        operation.fieldBases = [Array("title".utf8)[...]: 7]
        operation.epoch = "ab"
        operation.editedAt = "0198f2a3b4c50001"
        operation.syncedAt = 1_763_706_704_123
        operation.needs = [2, 3]
        operation.group = "g1"
        operation.references = [
            Reference(.field("project"), to: "project"), Reference(.key(part: 1), to: "order"),
            Reference(.document(field: "extra", path: "$.lines[*].order"), to: "order"),
        ]
        operation.original = Operation.Original(epoch: "aa", version: 12)
        (operation.isMove, operation.isConfirmed, operation.isSeed) = (true, true, true)
        operation.fields = DataObject(["title": "Buy milk", "done": 0])
        let text =
            #"{"lane":"lane-0001","number":42,"# + String(decoding: operation.sealedMembers(), as: UTF8.self) + "}"
        let (key, again) = try Array(text.utf8).withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            return try Operation.read(from: &reader)
        }
        #expect(key == OperationKey(lane: "lane-0001", number: 42))
        #expect(again == operation)
        #expect(again.base(ofField: Array("title".utf8)[...]) == 7)
        #expect(again.base(ofField: Array("done".utf8)[...]) == 10)
    }

    @Test("The order of a sender's fields does not make another operation")
    func canonicalBytes() {
        var left = Operation(.upsert, entity: "task", id: "t1")
        var right = left
        left.fields = DataObject(["a": 1, "b": 2])
        right.fields = DataObject(["b": 2, "a": 1])
        #expect(left.canonicalBytes() == right.canonicalBytes())
        right.fields = DataObject(["b": 2, "a": 2])
        #expect(left.canonicalBytes() != right.canonicalBytes())
        // Verdicts are kept under the digest of these bytes, also by older servers.
        left.fields = DataObject(["é": .null, "b": "x\"y", "B": 2, "a": .blob([1])])
        left.baseVersion = 4
        #expect(
            String(decoding: left.canonicalBytes(), as: UTF8.self)
                == #""type":"upsert","entity":"task","id":"t1","baseVersion":4,"fields":"#
                + #"{"B":2,"a":{"$blob":"AQ=="},"b":"x\"y","é":null}"#)
        var delete = Operation(.delete, entity: "task", id: "t1")
        delete.isMove = true
        #expect(
            String(decoding: delete.canonicalBytes(), as: UTF8.self)
                == #""type":"delete","entity":"task","id":"t1","moved":true"#)
    }

    @Test(
        "Errors name the member",
        arguments: [
            (#"{"clientId":"device-01"}"#, "scope"),
            (#"{"scope":"s"}"#, "clientId"),
            (#"{"scope":1,"clientId":"device-01"}"#, "scope"),
            (#"{"scope":"s","scope":"s","clientId":"device-01"}"#, "scope"),
            (#"{"scope":"s","clientId":"device-01","limit":"5"}"#, "limit"),
            (#"{"scope":"s","clientId":"device-01","operations":{}}"#, "operations"),
            (
                #"{"scope":"s","clientId":"device-01","operations":[{"lane":"lane-0001","number":1}]}"#,
                "operations[0].type"
            ),
            (
                requestWith(#""type":"upsert","entity":"t","id":"1","fields":{"a":true}"#),
                "operations[0].fields.a"
            ),
            (
                requestWith(#""type":"upsert","entity":"t","id":"1","fields":{"a":1,"a":1}"#),
                "operations[0].fields.a"
            ),
            (
                requestWith(
                    #""type":"upsert","entity":"t","id":"1","refs":[{"field":"a","entity":"t"},{"field":"b"}]"#),
                "operations[0].refs[1].entity"
            ),
            (
                requestWith(#""type":"upsert","entity":"t","id":"1","refs":[{"entity":"t","key":0,"field":"a"}]"#),
                "operations[0].refs[0].field"
            ),
            (
                requestWith(#""type":"upsert","entity":"t","id":"1","refs":[{"entity":"t","key":-1}]"#),
                "operations[0].refs[0].key"
            ),
        ])
    func errorsNameTheMember(text: String, expected: String) { #expect(path(of: text) == expected) }

    @Test(
        "A number out of range is no request that is too large (W9)",
        arguments: [
            (#""lane":"lane-0001","number":0,"type":"delete","entity":"t","id":"1""#, ProblemCode.limitOutOfRange),
            (
                #""lane":"lane-0001","number":1,"type":"delete","entity":"t","id":"1","baseVersion":-1"#,
                ProblemCode.limitOutOfRange
            ),
        ])
    func numberOutOfRange(members: String, code: ProblemCode) {
        let text = #"{"scope":"s","clientId":"device-01","operations":[{\#(members)}]}"#
        #expect { try request(text) } throws: { error in
            (error as? JSONError).map { Problem($0).code == code } ?? false
        }
    }

    @Test("Unknown members are ignored")
    func unknownMembers() throws {
        let request = try request(#"{"scope":"s","clientId":"device-01","new":{"deep":[1]},"since":null}"#)
        #expect(request.scope == "s")
        #expect(request.since == nil)
    }

    @Test("A verdict is read back as it was written")
    func verdictRoundTrip() throws {
        var verdict = Verdict(.merged, version: 12)
        verdict.record = Verdict.Record(version: 12, data: DataObject(["a": 1]))
        verdict.overwrites = [
            Verdict.Overwrite(field: "a", version: 9, theirs: "x"),
            Verdict.Overwrite(field: "b", version: 9, theirs: 1, rule: .lastEditWins),
        ]
        verdict.losses = [
            Verdict.Loss(field: "c", rule: .serverFields), Verdict.Loss(field: nil, rule: .editWins),
        ]
        verdict.revived = 8
        verdict.refusal = Verdict.Refusal(code: "c", detail: "d", hint: "h")
        let text = #"{"lane":"l","number":3,"# + String(decoding: verdict.members(), as: UTF8.self) + "}"
        let (key, again) = try Array(text.utf8).withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            return try Verdict.read(from: &reader)
        }
        #expect(key == OperationKey(lane: "l", number: 3))
        #expect(again == verdict)
    }

    @Test("A problem is read back as it was written", arguments: ProblemCode.allCases)
    func problemRoundTrip(code: ProblemCode) {
        var problem = Problem(code, "What happened.")
        if code == .checkpointExpired {
            problem.reason = .epoch
            problem.epoch = "ab"
            problem.survived = 10
            problem.lanes = ["lane-0001": 3, "lane-0002": 0]
        }
        problem.expected = code == .operationGap ? 7 : nil
        let again = problem.body().withUnsafeBytes { Problem(from: $0) }
        #expect(again == problem)
    }

    @Test("A proxy's page is no problem document")
    func foreignBody() {
        #expect(Array("<html>".utf8).withUnsafeBytes { Problem(from: $0) } == nil)
        #expect(Array("{}".utf8).withUnsafeBytes { Problem(from: $0) } == nil)
    }

    @Test("Declarations are read back as they were written")
    func declarationsRoundTrip() throws {
        let declarations = Declarations(
            isStrict: true,
            entities: [
                .state(
                    "task", conflict: .lastWriteWins, serverFields: ["summary"], priority: 3, defaults: ["a": 1.5],
                    patch: ["body", "notes"]),
                .events("audit"),
                .state("card", conflict: .lastEditWins, deletes: .lose),
                .state("order", ids: .server),
            ])
        let again = try declarations.body().withUnsafeBytes { try Declarations(from: $0) }
        #expect(again == declarations)
    }

    @Test(
        "Times are written as RFC 3339",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (-1, "1969-12-31T23:59:59.999Z"), (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
        ] as [(Int64, String)])
    func timestamps(milliseconds: Int64, text: String) {
        #expect(Timestamp.string(milliseconds: milliseconds) == text)
    }

    @Test("A refusal does not repeat what made the request large")
    func shortRefusals() {
        let name = String(repeating: "\\u0000é", count: 100_000)
        for text in [
            #"{"scope":"s","\#(name)":1,"\#(name)":1}"#, #"{"scope":"s","operations":[{"\#(name)":tru}]}"#,
            requestWith(#""type":"upsert","entity":"t","id":"1","fields":{"\#(name)":true}"#),
        ] {
            let error = #expect(throws: JSONError.self) {
                try Array(text.utf8).withUnsafeBytes { try ExchangeRequest(from: $0, operationLimit: 9) }
            }
            #expect(error.map { Problem($0).body().count < 3000 } == true)
        }
    }

    @Test(
        "Moments that RFC 3339 cannot spell are its first or its last, never a trap",
        arguments: [
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"), (-62_167_219_200_001, "0000-01-01T00:00:00.000Z"),
            (.min, "0000-01-01T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "9999-12-31T23:59:59.999Z"), (.max, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func timestampsOutOfRange(milliseconds: Int64, text: String) {
        #expect(Timestamp.string(milliseconds: milliseconds) == text)
    }
}

/// A request with one operation that has these members beside its key.
private func requestWith(_ members: String) -> String {
    #"{"scope":"s","clientId":"device-01","operations":[{"lane":"lane-0001","number":1,\#(members)}]}"#
}
