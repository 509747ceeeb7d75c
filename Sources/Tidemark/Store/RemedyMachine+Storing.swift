import GRDB
import TidemarkCore
import TidemarkWire

extension RemedyMachine {
    /// It stays in the file where the scope leaves: what the operator has stopped is stopped when it is back.
    private static func key(_ scope: Scope) -> String { "remedy \(scope.name)" }

    static func read(_ db: Database, _ scope: Scope) throws -> RemedyMachine {
        guard let text = try Meta.get(db, key(scope)) else { return RemedyMachine() }
        let kept = try? Array(text.utf8).reading { (reader: inout JSONReader) throws(JSONError) -> RemedyMachine in
            try Self.read(from: &reader)
        }
        return kept ?? RemedyMachine()
    }

    /// Hands an event to the scope's machine, and answers how that stands then. It writes only where something changes.
    @discardableResult
    static func handle(_ event: Event, _ db: Database, _ scope: Scope, now: Int64) throws -> RemedyMachine {
        var machine = try read(db, scope)
        let before = machine
        machine.handle(event, now: now)
        if machine != before { try Meta.set(db, key(scope), machine.text) }
        return machine
    }

    private static func read(from reader: inout JSONReader) throws(JSONError) -> RemedyMachine {
        var (number, name): (Int64, String) = (-1, "")
        var (interval, since, until, begun): (Int64, Int64, Int64, Int64) = (0, 0, 0, 0)
        var message = ""
        var outcome: RemedyOutcome?
        try reader.enterObject()
        while let label = try reader.nextMember() {
            switch reader.string(label) {
            case "number": number = try reader.readInteger()
            case "state": name = try reader.readString()
            case "interval": interval = try reader.readInteger()
            case "since": since = try reader.readInteger()
            case "until": until = try reader.readInteger()
            case "begun": begun = try reader.readInteger()
            case "message": message = try reader.readString()
            case "outcome": outcome = try RemedyOutcome.read(from: &reader)
            default: try reader.skip()
            }
        }
        let state: State =
            switch name {
            case "slowed": .slowed(interval: interval, since: since, until: until)
            case "refillDue": .refillDue
            case "refilling": .refilling
            case "verifyDue": .verifyDue(begun: Int(clamping: begun))
            case "stopped": .stopped(message: message)
            default: .none
            }
        return RemedyMachine(state, number: number, outcome: outcome)
    }

    private var text: String {
        var writer = JSONWriter(capacity: 128)
        writer.raw("{\"number\":")
        writer.integer(number)
        switch state {
        case .none: break
        case .slowed(let interval, let since, let until):
            writer.member("state", "slowed")
            writer.member("interval", interval)
            writer.member("since", since)
            writer.member("until", until)
        case .refillDue: writer.member("state", "refillDue")
        case .refilling: writer.member("state", "refilling")
        case .verifyDue(let begun):
            writer.member("state", "verifyDue")
            writer.member("begun", Int64(begun))
        case .stopped(let message):
            writer.member("state", "stopped")
            writer.member("message", message)
        }
        if let outcome {
            writer.memberName("outcome")
            outcome.append(to: &writer)
        }
        writer.raw("}")
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

extension RemedyMachine {
    /// - Throws: `stopped_by_operator` where the scope is stopped.
    func refuseStopped(_ scope: Scope) throws(SyncError) {
        if let error = stopError(scope) { throw error }
    }

    /// The error that an app gets for a scope that the operator has stopped; `nil` where he has not.
    func stopError(_ scope: Scope) -> SyncError? {
        stop.map { message in
            SyncError(
                .stoppedByOperator,
                "The operator has stopped syncing here" + (message.isEmpty ? "." : ": \(message)"),
                hint: "Edits are kept. It asks once an hour, when the app starts and at wake() whether it may go on.",
                scope: scope)
        }
    }
}
