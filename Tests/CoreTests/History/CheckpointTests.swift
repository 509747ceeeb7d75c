import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("Checkpoints")
struct CheckpointTests {
    private let key = [UInt8](repeating: 7, count: 32)
    private let scope: Scope = "workspace:1"
    private let checkpoint = Checkpoint(
        epoch: Epoch(id: .min, start: 2), position: 5, horizon: 9, complete: 3, origin: 4)

    private func history(
        head: Version, sweep: Version = 0, retention: Version = 0, _ incarnations: [(Int64, Version)] = [(1, 0)]
    ) -> ScopeHistory {
        ScopeHistory(
            head: head, sweepFloor: sweep, retentionFloor: retention,
            incarnations: incarnations.map { ScopeHistory.Incarnation(id: $0.0, start: $0.1) })
    }

    private func reason(_ checkpoint: Checkpoint, in history: ScopeHistory) -> Problem.Reason? {
        do throws(Problem) {
            _ = try checkpoint.resumed(in: history)
            return nil
        } catch { return error.reason }
    }

    @Test("come back from their tokens")
    func token() throws {
        #expect(try Checkpoint(token: checkpoint.token(scope: scope, key: key), scope: scope, key: key) == checkpoint)
    }

    @Test("altered by any one character, cut or prolonged are refused")
    func altered() throws {
        let token = checkpoint.token(scope: scope, key: key)
        for index in token.indices {
            let letter: Character = token[index] == "A" ? "B" : "A"
            let changed = token.replacingCharacters(at: index, with: letter)
            #expect(throws: Problem.self) { try Checkpoint(token: changed, scope: scope, key: key) }
        }
        for count in 0..<token.count {
            #expect(throws: Problem.self) {
                try Checkpoint(token: String(token.prefix(count)), scope: scope, key: key)
            }
        }
        #expect(throws: Problem.self) { try Checkpoint(token: token + "AAAA", scope: scope, key: key) }
    }

    @Test("of another scope or another key are refused")
    func foreign() {
        let token = checkpoint.token(scope: scope, key: key)
        #expect(throws: Problem.self) { try Checkpoint(token: token, scope: "workspace:2", key: key) }
        #expect(throws: Problem.self) { try Checkpoint(token: token, scope: scope, key: [1]) }
    }

    @Test("A finished scan begins the next one at the head")
    func nextScan() throws {
        let done = Checkpoint(epoch: Epoch(id: 1, start: 0), position: 5, horizon: 5, complete: 5, origin: nil)
        let next = try done.resumed(in: history(head: 9))
        #expect(next == Checkpoint(epoch: Epoch(id: 1, start: 0), position: 5, horizon: 9, complete: 5, origin: nil))
        #expect(next.advanced(to: 7).complete == 5)
        #expect(next.advanced(to: nil).complete == 9)
    }

    @Test("A scan keeps its horizon while the window holds it, and takes a new one after")
    func horizon() throws {
        let scan = Checkpoint(epoch: Epoch(id: 1, start: 0), position: 3, horizon: 5, complete: 2, origin: nil)
        #expect(try scan.resumed(in: history(head: 9, sweep: 5)).horizon == 5)
        let moved = try scan.resumed(in: history(head: 9, sweep: 6))
        #expect(moved.horizon == 9)
        #expect(moved.complete == 2)
    }

    @Test("ahead of the head, of another history, or behind the floor are told apart")
    func expired() {
        func done(_ version: Version, _ incarnation: Int64 = 1) -> Checkpoint {
            Checkpoint(
                epoch: Epoch(id: incarnation, start: 0), position: version, horizon: version, complete: version,
                origin: nil)
        }
        #expect(reason(done(10), in: history(head: 9)) == .ahead)
        #expect(reason(done(9), in: history(head: 9)) == nil)
        #expect(reason(done(9, 2), in: history(head: 9)) == .epoch)
        // Restored at 5 and grown past the reader since.
        #expect(reason(done(9), in: history(head: 20, [(1, 0), (3, 5)])) == .epoch)
        #expect(reason(done(5), in: history(head: 20, [(1, 0), (3, 5)])) == nil)
        #expect(reason(done(9, 3), in: history(head: 20, [(1, 0), (3, 5)])) == nil)
        #expect(reason(done(3), in: history(head: 9, retention: 4)) == .retention)
        #expect(reason(done(4), in: history(head: 9, retention: 4)) == nil)
        #expect(reason(done(0, 0), in: history(head: 9)) == nil)
    }

    @Test("A scan from the beginning is held to its first horizon, not to its position")
    func origin() {
        let scan = Checkpoint(epoch: Epoch(id: 1, start: 0), position: 1, horizon: 9, complete: 0, origin: 9)
        #expect(reason(scan, in: history(head: 12, retention: 9)) == nil)
        #expect(reason(scan, in: history(head: 12, retention: 10)) == .retention)
    }
}

extension String {
    fileprivate func replacingCharacters(at index: Index, with letter: Character) -> String {
        var copy = self
        copy.replaceSubrange(index...index, with: [letter])
        return copy
    }
}
