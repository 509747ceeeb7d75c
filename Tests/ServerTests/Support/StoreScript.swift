import Foundation
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

/// One thing that a script does inside a write.
indirect enum ScriptStep: Sendable {
    case append(NewRow, at: Int64)
    case verdict(LaneName, Int64, at: Int64)
    case alias(TemporaryName, RecordID, at: Int64)
    case reject(StoredRejection, limit: Int)
    case note(DeviceStanding, DeviceName)
    case report(DeviceReport, at: Int64, DeviceName)
    case remedy(KeptRemedy, DeviceName)
    case deletes([UInt8], by: String, String, at: Int64)
    /// Up to so many versions below the head.
    case expire(below: Version)
    case sweep(beyond: Int64, limit: Int)
    case forget(devices: Int64, lanes: Int64)
    case forgetVerdicts(LaneName, Int64)
    case attempt([ScriptStep], fails: Bool)
    case look

    func run(_ writer: any ScopeWriter) throws -> String {
        switch self {
        case .append(let row, let moment): return "\(try writer.append(row, at: moment))"
        case .verdict(let lane, let number, let moment):
            let verdict = StoredVerdict(
                digest: [UInt8(number)], members: [1], version: writer.state.head,
                baseNumber: number % 3 == 0 ? 1 : nil,
                tookEffect: number % 2 == 0)
            try writer.store(verdict, lane, number, at: moment)
        case .alias(let name, let id, let moment): try writer.store(id, for: name, at: moment)
        case .reject(let rejection, let limit): try writer.keep(rejection, limit: limit)
        case .note(let standing, let device): try writer.note(standing, of: device)
        case .report(let report, let moment, let device): try writer.note(report, at: moment, of: device)
        case .remedy(let remedy, let device): try writer.note(remedy, of: device)
        case .deletes(let note, let principal, let entity, let moment):
            try writer.store(tally: note, by: principal, of: entity, at: moment)
        case .expire(let below): try writer.expire(through: writer.state.head - below)
        case .sweep(let weight, let limit):
            return "\(try writer.sweep(supersededBeyond: weight, limit: limit)) of \(writer.state.superseded)"
        case .forget(let devices, let lanes):
            let unheard = try writer.unheard(devicesBefore: devices, lanesBefore: lanes)
            return "\(unheard): \(try writer.forget(devicesBefore: devices, lanesBefore: lanes, limit: 99))"
        case .forgetVerdicts(let lane, let number): try writer.forgetVerdicts(lane, through: number)
        case .attempt(let steps, let fails):
            var answers: [String] = []
            try? writer.attempt {
                for step in steps { answers.append(try step.run(writer)) }
                if fails { throw Undone() }
            }
            return "\(answers)"
        case .look: return try writer.dump().joined(separator: "\n")
        }
        return "done"
    }
}

/// Calls of a store that are drawn from a seed.
struct StoreScript {
    private var generator: SplitMix64
    private var clock: Int64 = 100
    private var count: Int64 = 0

    init(seed: UInt64) { generator = SplitMix64(seed: seed) }

    /// A moment that no other call has; the clock jumps back now and then.
    private mutating func moment() -> Int64 {
        clock += Int64.random(in: 0...4, using: &generator) == 0 ? -Int64.random(in: 0...20, using: &generator) : 3
        count += 1
        return clock * 10_000 + count
    }

    private mutating func one<T>(of all: [T]) -> T { all[Int.random(in: 0..<all.count, using: &generator)] }

    private mutating func row() -> NewRow {
        let (id, number) = (one(of: StoreNames.records), Int.random(in: 0...3, using: &generator))
        let entity = one(of: StoreNames.entities)
        switch Int.random(in: 0..<10, using: &generator) {
        case 0..<6:
            var row = NewRow.upsert(id, number == 0 ? "{}" : #"{"f\#(number)":\#(number),"n":null}"#, of: entity)
            if number == 1 { (row.fieldVersions, row.originals) = ([1, 2], [3]) }
            return row
        case 6, 7: return .delete(id, madeOn: number == 0 ? nil : Version(number), of: entity)
        case 8: return .event(id, "[\(number)]")
        default: return .idmap(id)
        }
    }

    private mutating func step(depth: Int) -> ScriptStep {
        let number = Int64.random(in: 1...StoreNames.lastNumber, using: &generator)
        switch Int.random(in: 0..<32, using: &generator) {
        case 0..<10: return .append(row(), at: moment())
        case 10..<14: return .verdict(one(of: StoreNames.lanes), number, at: moment())
        case 14, 15: return .alias(one(of: StoreNames.temporaries), one(of: StoreNames.records), at: moment())
        case 16: return .reject(.test(one(of: StoreNames.scopes), number: number), limit: Int(number))
        case 17, 18:
            let version = number % 3 == 0 ? nil : number
            let oldest = number % 4 == 0 ? number : nil
            return .note(
                DeviceStanding(version: version, seen: moment(), oldest: oldest), one(of: StoreNames.devices))
        case 19: return .expire(below: number)
        case 20: return .forget(devices: moment() - number * 100_000, lanes: moment() - number * 50_000)
        case 21: return .forgetVerdicts(one(of: StoreNames.lanes), number)
        case 22..<26 where depth < 3: return .attempt(steps(depth: depth + 1), fails: number % 2 == 0)
        case 26: return .look
        case 27:
            let principal = number % 2 == 0 ? "ada" : "e\u{301}"
            return .deletes([UInt8(number)], by: principal, one(of: StoreNames.entities), at: moment())
        case 29, 30:
            var report = DeviceReport()
            (report.pending, report.refused) = (number, number % 4 == 0 ? 1 : 0)
            if number % 2 == 0 {
                (report.oldest, report.app, report.error) = (Duration.seconds(number), "é \(number)", "failed")
            }
            return .report(report, at: moment(), one(of: StoreNames.devices))
        case 31:
            let asked = Date(milliseconds: moment())
            var remedy = KeptRemedy(number: number, remedy: .stop(message: "é \(number)"), asked: asked)
            if number % 2 == 0 {
                (remedy.outcome, remedy.told) = (RemedyOutcome(number, .done), Date(milliseconds: moment()))
            }
            return .remedy(remedy, one(of: StoreNames.devices))
        case 28: return .sweep(beyond: (number - 2) * 200, limit: Int(number) * 2)
        default: return .append(row(), at: moment())
        }
    }

    private mutating func steps(depth: Int) -> [ScriptStep] {
        (0..<Int.random(in: 1...4, using: &generator)).map { _ in step(depth: depth) }
    }

    /// Makes the next call on all stores; answers what each has answered.
    mutating func call(_ benches: [StoreBench]) async throws -> [String] {
        let (scope, number) = (one(of: StoreNames.scopes), Int.random(in: 1...30, using: &generator))
        let moment = number < 6 ? moment() : 0
        let (steps, fails) = (number < 6 ? [] : steps(depth: 0), number % 6 == 0)
        var answers: [String] = []
        for bench in benches {
            let store = bench.store
            switch number {
            case 1: answers.append("\(try await store.sweep(supersededBefore: moment - 30_000, limit: 5))")
            case 2: try bench.reopen()
            case 3: answers.append("\(try await store.discardRejection(moment % 7))")
            case 4: answers.append("\(try await store.scopes(after: scope, limit: 2)) in \(scope)")
            case 5: try await store.setAgeClock(moment)
            default:
                answers.append(
                    await Result.caught {
                        try await bench.write(scope) { writer in
                            let answers = try steps.map { try $0.run(writer) }
                            if fails { throw Undone() }
                            return answers.joined(separator: "; ")
                        }
                    })
            }
        }
        return answers
    }
}

extension Result<String, any Error> {
    /// What came of a call, without the words that only one store has for a failure.
    fileprivate static func caught(_ work: () async throws -> String) async -> String {
        do { return try await work() } catch { return "refused" }
    }
}
