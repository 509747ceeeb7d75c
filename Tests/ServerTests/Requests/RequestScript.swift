import TidemarkFuzzing
import TidemarkWire

@testable import TidemarkServer

/// What a script asks of a server, and who asks it when.
struct ScriptRequest: Sendable, CustomStringConvertible {
    enum Ask: Sendable {
        case exchange([UInt8], ExchangeMode)
        case changes(since: String?, limit: Int64?, takes: Differences)
        case snapshot(SnapshotQuery)
        case records(NamedRecords)
        case digest(DigestQuery)
        /// By the server's own program; `nil` for fields: a delete.
        case commit(entity: String, id: RecordID, fields: [String: Value]?)
        case rejections(Scope?)
        case retry(Int64)
        case discard(Int64)
        case sweep
        case compact(elapsed: Duration, isRehearsal: Bool)
        case reopen
    }

    var ask: Ask
    var scope: Scope
    var access: Access
    var client: String?
    var moment: Int64

    var description: String {
        let caller = "in \(scope) at \(moment) by \(access) on \(client ?? "no device")"
        guard case .exchange(let body, let mode) = ask else { return "\(ask) \(caller)" }
        return "\(mode) \(caller)\n\(String(decoding: body, as: UTF8.self))"
    }
}

/// Requests that are drawn from a seed. What answers have taught it (tokens, epochs) it uses again.
struct RequestScript {
    private var dice: Mutator
    private var bodies = BodyGrammar()
    private var tokens = LearnedTokens()
    private var sent: [[UInt8]] = []
    private var head: Version = 1
    /// The next page of a snapshot that has not come to its end.
    private var nextPage: SnapshotQuery?
    private var moment: Int64 = 1_700_000_000_000

    init(seed: UInt64) throws {
        dice = Mutator(seed: seed, pool: try Corpus.requests())
    }

    private static let principals = ["Ada", "é", "e\u{301}", "'\"\\\u{0}", "", String(repeating: "p", count: 255)]
    private static let values = HostileJSON.values.compactMap { DataObject.decoded(Array($0.utf8)[...]) }
    private static let names =
        ["t0", "t1", "t2", "t3", "7", "local-1", "[1,\"a\"]", "é", "\u{7}"]
        + values.prefix(HostileJSON.ids.count).compactMap { if case .text(let text) = $0 { text } else { nil } }
    private static let entities =
        BodyGrammar.entities.map(\.name)
        + ["thing", "Task", "task", "note", "order", "é", "e\u{301}", "Order \"Details\" é\\"]

    mutating func next() -> ScriptRequest {
        pass()
        let scope: Scope = dice.below(15) == 0 ? dice.any(["x", "W"]) : "w"
        let level: Access.Level = dice.below(30) == 0 ? dice.any([.none, .read]) : .readWrite
        let principal = dice.below(8) == 0 ? dice.any(Self.principals) : "ada"
        let client = dice.below(3) == 0 ? nil : dice.any(["device-00", "device-01", "device-02"])
        return ScriptRequest(
            ask: ask(scope), scope: scope,
            access: Access(level, principal: principal, isService: dice.below(10) == 0), client: client, moment: moment)
    }

    /// Mostly a little; now and then longer than devices are known, or back.
    private mutating func pass() {
        switch dice.below(40) {
        case 0: moment += 700_000
        case 1: moment += 90_000
        case 2, 3: moment -= Int64(dice.below(5000))
        default: moment += Int64(dice.below(3000))
        }
    }

    private mutating func ask(_ scope: Scope) -> ScriptRequest.Ask {
        switch dice.below(40) {
        case 0..<22: return .exchange(body(), dice.below(6) == 0 ? .pushOnly : .pushAndPull)
        case 22..<25:
            return .changes(since: since(), limit: limit(), takes: Differences(rawValue: UInt8(dice.below(4))))
        case 25..<28: return .snapshot(snapshot(scope))
        case 28..<31: return .records(records(scope))
        case 31..<34: return .digest(digest(scope))
        case 34:
            guard let id = RecordID(name()) else { return .sweep }
            let names = dice.below(5) == 0 ? Self.names : ["title", "done", "body", "summary"]
            let fields = (0..<dice.below(4)).map { _ in (dice.any(names), dice.any(Self.values)) }
            return .commit(
                entity: dice.any(Self.entities), id: id,
                fields: dice.below(5) == 0 ? nil : Dictionary(fields) { $1 })
        case 35: return .rejections(dice.below(2) == 0 ? nil : scope)
        case 36: return dice.below(2) == 0 ? .retry(Int64(dice.below(60))) : .discard(Int64(dice.below(60)))
        case 37: return .sweep
        case 38: return .compact(elapsed: .seconds(dice.below(400)), isRehearsal: dice.below(3) == 0)
        default: return dice.below(2) == 0 ? .reopen : .compact(elapsed: .seconds(1000), isRehearsal: false)
        }
    }

    private mutating func name() -> String { dice.any(Self.names) }

    private mutating func since() -> String? { dice.below(3) == 0 ? nil : tokens.token(of: "since", with: &dice) }

    private mutating func limit() -> Int64? {
        dice.below(3) == 0 ? nil : dice.below(30) == 0 ? dice.any([0, -1, .max, .min]) : Int64(1 + dice.below(9))
    }

    /// One that is new, that was sent before, or that is broken.
    private mutating func body() -> [UInt8] {
        if !sent.isEmpty, dice.below(8) == 0 { return dice.any(sent) }
        var body = bodies.body(
            with: &dice, epochs: tokens.texts("epoch"), checkpoints: tokens.texts("since"), head: head)
        if dice.below(20) == 0 { dice.mutate(&body) }
        if sent.count < 12 { sent.append(body) } else { sent[dice.below(12)] = body }
        return body
    }

    private mutating func snapshot(_ scope: Scope) -> SnapshotQuery {
        if let nextPage, dice.below(4) > 0 { return nextPage }
        var query = SnapshotQuery(of: scope)
        if dice.below(3) == 0 { query.since = since() }
        if dice.below(8) == 0 { query.token = tokens.token(of: "snapshotToken", with: &dice) }
        if dice.below(8) == 0 { query.cursor = tokens.token(of: "pageCursor", with: &dice) }
        query.limit = limit()
        if dice.below(4) == 0 { query.entity = dice.any(Self.entities) }
        if dice.below(4) == 0 { query.fields = dice.any(["title", "title,body,é", "e\u{301}", ",", "'", name()]) }
        return query
    }

    private mutating func records(_ scope: Scope) -> NamedRecords {
        let ids = (0...dice.below(5)).map { _ in name() }
        var named = NamedRecords(of: dice.any(Self.entities), in: scope, ids: ids)
        if dice.below(2) == 0 {
            named.follow = [dice.any(["list:task", "title:note", "é:task", "':order", "a:", "b"])]
        }
        if dice.below(4) == 0 { named.since = since() }
        return named
    }

    private mutating func digest(_ scope: Scope) -> DigestQuery {
        var query = DigestQuery(of: scope)
        if dice.below(3) == 0 { query.at = since() }
        guard dice.below(3) > 0 else { return query }
        query.entity = dice.any(Self.entities)
        if dice.below(2) == 0 { query.after = name() }
        if dice.below(2) == 0 { query.through = name() }
        query.every = limit()
        query.fields = (0..<dice.below(4)).map { _ in dice.any(["title", "done", "body", name()]) }
        return query
    }

    /// Keeps what an answer holds for later requests.
    mutating func learn(from answer: Answer, to request: ScriptRequest) {
        tokens.learn(with: &dice) { answer.members[$0] as? String }
        head = max(head, answer.head)
        guard case .snapshot(var query) = request.ask, answer.members["changes"] != nil else { return }
        (query.token, query.cursor) = (
            answer.members["snapshotToken"] as? String, answer.members["pageCursor"] as? String
        )
        nextPage = query.cursor == nil ? nil : query
    }
}
