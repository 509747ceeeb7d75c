import TidemarkCore
package import TidemarkWire

/// Grows the bodies of exchanges: operations of every kind, on few records, with whatever members may stand there.
package struct BodyGrammar {
    private var lanes = 0
    private var numbers = 0
    /// Whether the body that is growing is to be read as a whole: one wrong member, and nothing of it is done.
    private var isSound = false
    private var head: Version = 50

    package static let entities: [EntityDeclaration] = [
        .state("task", serverFields: ["summary"], defaults: ["mood": "fine"]),
        .state("note", conflict: .lastEditWins, deletes: .lose, patch: ["body"]),
        .state("choice", conflict: .manual), .state("order", ids: .server), .events("audit"),
        .state("hidden", direction: .push), .state("told", direction: .pull),
        .state("last", conflict: .lastWriteWins),
    ]
    /// As they stand in JSON.
    private static let names =
        entities.map(\.name) + [
            "thing", "Task", "task", "note", "NOTE", "é", "e\u{301}", #"Order \"Details\" é\\"#, " x",
        ]
    package static let text = String(repeating: "Zeile — 日本 👩‍👩‍👧 of the text\n", count: 80)

    package init() {}

    /// - Parameter head: the last version there is.
    package mutating func body(
        with dice: inout Mutator, epochs: [String], checkpoints: [String], head: Version = 50
    ) -> [UInt8] {
        (isSound, self.head) = (dice.below(3) > 0, max(1, head))
        // Mostly one that nobody has used, so that no number is missing.
        if dice.below(8) > 0 { (lanes, numbers) = (lanes + 1, 0) }
        if dice.below(30) == 0 { numbers += dice.below(3) }
        var members = [
            #""scope":"\#(dice.below(30) == 0 ? dice.any(["x", "W"]) : "w")""#,
            #""clientId":"device-0\#(dice.below(3))""#,
        ]
        if dice.below(4) == 0, let checkpoint = checkpoints.randomElement(using: &dice) {
            members.append(#""since":"\#(checkpoint)""#)
        }
        if dice.below(4) == 0 { members.append(#""limit":\#(dice.any(["1", "5", "5000"]))"#) }
        if slips(&dice, 60) { members.append(#""limit":\#(number(&dice))"#) }
        if dice.below(4) == 0 { members.append(#""patches":true"#) }
        if dice.below(30) == 0 { members.append(#""acked":{"\#(lane)":\#(number(&dice))}"#) }
        if slips(&dice, 30) { members.append(#""protocolVersion":\#(number(&dice))"#) }
        let operations = (0..<dice.below(12)).map { _ in operation(with: &dice, epochs: epochs) }
        members.append(#""operations":[\#(operations.joined(separator: ","))]"#)
        members.shuffle(using: &dice)
        return Array("{\(members.joined(separator: ","))}".utf8)
    }

    private var lane: String { "lane-\(String(1_000_000 + lanes))" }

    private mutating func operation(with dice: inout Mutator, epochs: [String]) -> String {
        numbers += 1
        let kind = dice.any(["upsert", "upsert", "upsert", "delete", "event", "patch", "void"])
        var members = [#""lane":"\#(lane)""#, #""number":\#(numbers)"#, #""type":"\#(kind)""#]
        members.append(#""entity":"\#(kind == "event" ? "audit" : dice.any(Self.names))""#)
        if !slips(&dice, 40) { members.append(#""id":\#(id(&dice))"#) }
        if dice.below(8) == 0 { members.append(#""tempId":"local-\#(dice.below(4))""#) }
        if dice.below(2) == 0 { members.append(#""baseVersion":\#(version(&dice))"#) }
        if dice.below(8) == 0 { members.append(#""baseNumber":\#(earlier(&dice))"#) }
        if dice.below(6) == 0 { members.append(#""bases":{"title":\#(version(&dice)),"body":\#(version(&dice))}"#) }
        if dice.below(6) == 0 { members.append(#""editedAt":"\#(stamp(&dice))""#) }
        if dice.below(6) == 0 { members.append(#""syncedAt":\#(number(&dice))"#) }
        if dice.below(8) == 0 { members.append(#""needs":[\#(earlier(&dice)),\#(max(1, numbers - 1))]"#) }
        if dice.below(6) == 0 { members.append(#""epoch":"\#(dice.any(epochs))""#) }
        if dice.below(5) == 0 { members.append(#""group":"g\#(dice.below(2))""#) }
        members += circumstances(&dice, epochs: epochs)
        let hasText = kind != "patch" || slips(&dice, 3)
        if kind == "patch" { members.append(#""patch":\#(patches(&dice))"#) }
        if dice.below(10) > 0 { members.append("\"\(kind == "event" ? "data" : "fields")\":\(fields(&dice, hasText))") }
        members.shuffle(using: &dice)
        return "{\(members.joined(separator: ","))}"
    }

    /// The members that say how an edit came about: by a move, as a row of the first capture, from another history.
    private func circumstances(_ dice: inout Mutator, epochs: [String]) -> [String] {
        var members: [String] = []
        if dice.below(8) == 0 { members.append(#""moved":true"#) }
        if dice.below(8) == 0 { members.append(#""seed":true"#) }
        if dice.below(8) == 0 { members.append(#""refs":\#(references(&dice))"#) }
        if dice.below(8) == 0 {
            members.append(#""original":{"epoch":"\#(dice.any(epochs))","version":\#(version(&dice))}"#)
        }
        return members
    }

    private func id(_ dice: inout Mutator) -> String {
        guard !slips(&dice, 60) else { return dice.any([#""""#, #""\u0000""#, "7", #""\u007f""#]) }
        if dice.below(6) == 0 { return dice.any(HostileJSON.ids) }
        return dice.any([
            #""t0""#, #""t1""#, #""t2""#, #""t3""#, #""\#(dice.below(20))""#, #""local-\#(dice.below(4))""#,
            #""é""#,
            #""e\u0301""#, #""\ud83d\ude00""#, #""[1,\"a\"]""#, #""-3000000000000000000""#,
            #""\#(String(repeating: "i", count: 128))""#,
        ])
    }

    /// Whether something wrong is put in, once in so many times.
    private func slips(_ dice: inout Mutator, _ odds: Int) -> Bool { !isSound && dice.below(odds) == 0 }

    /// A version that there is; now and then any number.
    private func version(_ dice: inout Mutator) -> String {
        slips(&dice, 8) ? number(&dice) : String(1 + dice.below(Int(head)))
    }

    /// The number of an earlier operation of the lane; now and then any.
    private func earlier(_ dice: inout Mutator) -> String {
        slips(&dice, 3) ? number(&dice) : String(1 + dice.below(numbers))
    }

    private func number(_ dice: inout Mutator) -> String {
        guard !slips(&dice, 100) else { return dice.any(["-1", "0", "1.5", "9223372036854775808", "null"]) }
        return dice.any(["1", "2", "3", "10", "50", "500", "1700000000000", "9223372036854775807"])
    }

    private func stamp(_ dice: inout Mutator) -> String {
        dice.any(["0000000000000000", "7fffffffffffffff", "ffffffffffffffff", "018bcfe568000001", "now", ""])
    }

    private static let fieldNames = [#""title""#, #""done""#, #""list""#, #""doc""#, #""summary""#, #""é""#]

    private func fields(_ dice: inout Mutator, _ hasText: Bool) -> String {
        var fields: [String: String] = [:]
        for _ in 0..<dice.below(5) {
            let name = dice.any(dice.below(8) == 0 ? HostileJSON.ids : Self.fieldNames)
            fields[name] = value(&dice)
        }
        if hasText, dice.below(3) == 0 {
            var writer = JSONWriter()
            writer.string(Self.text)
            fields[#""body""#] = String(decoding: writer.bytes, as: UTF8.self)
        }
        return "{\(fields.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value)" }.joined(separator: ","))}"
    }

    private func value(_ dice: inout Mutator) -> String {
        guard !slips(&dice, 60) else {
            return dice.any(HostileJSON.invalid)
        }
        if dice.below(3) == 0 { return dice.any(HostileJSON.values) }
        return dice.any([
            "null", "0", "-1", "1.5", "-0.0", "1e300", #""x""#, #""local-1""#, #"{"$int":"9223372036854775807"}"#,
            #"{"$real":"inf"}"#, #"{"$blob":"AAEC"}"#, #""{\"items\":[{\"id\":\"local-1\"},{\"id\":7}]}""#,
            #""\u0000\u001f""#, "9223372036854775807",
        ])
    }

    private func references(_ dice: inout Mutator) -> String {
        dice.any([
            #"[{"field":"list","entity":"task"}]"#, #"[{"key":0,"entity":"order"},{"key":2000,"entity":"task"}]"#,
            #"[{"field":"doc","path":"$.items[*].id","entity":"order"},{"field":"title","entity":"order"}]"#,
            #"[{"field":"body","path":"$","entity":"task"}]"#, #"[{"field":"é","entity":"order"}]"#, "[]",
        ])
    }

    private func patches(_ dice: inout Mutator) -> String {
        let old = Array(Self.text.utf8)
        let splice = FieldPatch.Splice(at: 6, deleted: 0, inserted: Array("é".utf8))
        let new = Array(old[..<6]) + splice.inserted + old[6...]
        var patch = FieldPatch(field: "body", splices: [splice], hash: TextPatch.mark(of: new))
        if dice.below(2) == 0 {
            patch.splices = (0..<dice.below(4)).map { _ in
                let numbers: [Int64] = [0, 1, 5, 6, 3000, -1, .max, .min]
                return FieldPatch.Splice(at: dice.any(numbers), deleted: dice.any(numbers), inserted: [0x61])
            }
        }
        var writer = JSONWriter()
        writer.patches([patch])
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
