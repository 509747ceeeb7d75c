import Testing

@testable import TidemarkCore

@Suite("A record's machine")
struct RecordMachineTests {
    private typealias Event = RecordMachine.Event

    /// A machine that has taken events in, each of which was possible.
    private func machine(_ events: RecordMachine.Event...) throws -> RecordMachine {
        var machine = RecordMachine()
        for event in events {
            try #require(machine.accepts(event), "\(event.text) in \(machine.outline)")
            _ = machine.handle(event)
        }
        return machine
    }

    /// What waits for the app, and edits that outlived a scope, mean nothing for any other region.
    private static func reduced(_ machine: RecordMachine) -> RecordMachine {
        var machine = machine
        (machine.decision, machine.orphan) = (.none, .none)
        return machine
    }

    private struct Step {
        var before: RecordMachine
        var event: RecordMachine.Event
        var after: RecordMachine

        var text: String { "\(before.outline) -- \(event.text) --> \(after.outline)" }
    }

    /// Steps of all states that the machine comes to for which something does not hold; a few of them.
    private static func steps(_ isWrong: (Step) -> Bool) -> [String] {
        var found: [String] = []
        _ = RecordMachine.reachable(reduced) { before, event, _, after in
            let step = Step(before: before, event: event, after: after)
            if found.count < 5, isWrong(step) { found.append(step.text) }
        }
        return found
    }

    // MARK: Ways of one record

    @Test("an edit goes up: queued, sealed, taken")
    func up() throws {
        var machine = try machine(.row, .edited)
        #expect((machine.local, machine.queue, machine.base) == (.edited, .queued, .present))
        #expect(machine.handle(.sealed(.write)) == [.dequeue, .seal])
        #expect((machine.local, machine.queue, machine.inFlight) == (.clean, .idle, .write))
        #expect(machine.handle(.verdict(.taken, .present)) == [.saveServerRow, .finish])
        #expect(machine == (try self.machine(.row)))
    }

    @Test("a change comes down under an edit, which stays on screen")
    func rebase() throws {
        var machine = try machine(.row, .edited)
        #expect(machine.handle(.row) == [.saveServerRow])
        #expect((machine.local, machine.place) == (.edited, .table))
    }

    @Test("a deletion takes a clean row away, and leaves an edited one on screen until its verdict")
    func tombstone() throws {
        var clean = try machine(.row)
        #expect(clean.handle(.tombstone) == [.saveServerRow, .cascade, .deleteRow])
        #expect(clean == RecordMachine())
        var edited = try machine(.row, .edited)
        #expect(edited.handle(.tombstone) == [.saveServerRow, .cascade])
        #expect((edited.base, edited.local, edited.place) == (.deleted, .edited, .table))
        _ = edited.handle(.sealed(.write))
        #expect(edited.handle(.verdict(.rejected, .gone)).contains(.deleteRow))
        #expect((edited.base, edited.decision, edited.place) == (.absent, .rejected, .nowhere))
    }

    @Test("a row that was deleted here stays away while its delete is under way, and comes back when it is refused")
    func delete() throws {
        var machine = try machine(.row, .deleted, .sealed(.delete))
        #expect(!machine.handle(.row).contains(.writeRow))
        #expect(machine.place == .nowhere)
        #expect(machine.handle(.verdict(.rejected, .same)) == [.finish, .recordRefusal, .writeRow])
        #expect((machine.place, machine.decision) == (.table, .rejected))
    }

    @Test("an edit that is put off is an edit again")
    func deferred() throws {
        var machine = try machine(.edited, .sealed(.write))
        #expect(machine.handle(.verdict(.deferredWrite, .same)) == [.enqueue, .finish])
        #expect(machine == (try self.machine(.edited)))
    }

    @Test("an insert that its parent blocks is released with it")
    func blocked() throws {
        var machine = try machine(.edited, .blocked(.rejectedParent))
        #expect((machine.queue, machine.block) == (.idle, .rejectedParent))
        #expect(machine.handle(.released) == [.enqueue, .unblock])
        #expect(machine == (try self.machine(.edited)))
    }

    @Test("a move: the old scope keeps the row until the new one has it")
    func move() throws {
        var machine = try machine(.row, .edited, .movedOut)
        #expect((machine.place, machine.local) == (.leaving, .clean))
        #expect(!machine.accepts(.departureSealed))
        _ = machine.handle(.arrival(.taken))
        #expect(machine.handle(.departureSealed) == [.seal])
        #expect(machine.handle(.verdict(.taken, .gone)).contains(.forgetRefused))
        #expect(machine == RecordMachine())
    }

    @Test("a row that the schema refuses stands outside the table until it fits")
    func quarantined() throws {
        var machine = try machine(.row)
        #expect(machine.handle(.refused) == [.quarantine, .deleteRow])
        #expect(machine.place == .quarantined)
        #expect(machine.handle(.accepted) == [.writeRow])
        #expect(machine == (try self.machine(.row)))
    }

    @Test("a scope goes only when what was edited is orphaned")
    func access() throws {
        var machine = try machine(.row, .edited)
        #expect(!machine.accepts(.accessLost))
        #expect(machine.handle(.orphaned).contains(.orphan))
        #expect(machine.handle(.accessLost).contains(.removeScope))
        #expect((machine.access, machine.orphan, machine.place) == (.lost, .orphaned, .nowhere))
    }

    @Test("a record that is new here and cannot travel stays when its scope goes")
    func unsendable() throws {
        let machine = try machine(.edited, .blocked(.unsendable), .accessLost)
        #expect((machine.local, machine.place, machine.block) == (.edited, .table, .unsendable))
    }

    @Test("a lost operation is an edit of the row again")
    func replayed() throws {
        var machine = try machine(.row, .historyLost)
        #expect(machine.handle(.replayed(.delete)) == [.replay, .deleteRow])
        #expect(machine.handle(.verdict(.taken, .same)) == [.finish, .writeRow])
    }

    @Test("an event that cannot happen changes nothing")
    func late() {
        for event in [Event.verdict(.taken, .present), .sealed(.write), .arrival(.taken), .named, .orphanTaken] {
            var machine = RecordMachine()
            let effects = machine.handle(event)
            #expect(effects.isEmpty)
            #expect(machine == RecordMachine(), "\(event.text)")
        }
    }

    // MARK: All states

    @Test("All states are some thousands, and no coupling is broken in any of them")
    func states() {
        let states = RecordMachine.reachable(Self.reduced)
        #expect((1_000..<50_000).contains(states.count), "\(states.count)")
        let broken = states.filter { !$0.broken.isEmpty }
        #expect(broken.isEmpty, "\(broken.prefix(5).map { "\($0.outline): \($0.broken)" })")
    }

    @Test("Something gives way for exactly the couplings that say so")
    func givingWay() {
        var enforced: Set<RecordMachine.Coupling> = []
        _ = RecordMachine.reachable(Self.reduced) { before, event, _, _ in
            var machine = before
            _ = machine.handle(event) { enforced.insert($0) }
        }
        #expect(enforced == Set(RecordMachine.Coupling.allCases.filter(\.givesWay)))
    }

    @Test("An edit goes only where it is kept: sealed, orphaned, refused with a reason, or no difference any more")
    func edits() {
        let lost = Self.steps { step in
            guard step.before.local != .clean, step.after.local == .clean else { return false }
            switch step.event {
            // It is an operation, or in a list; or an edit of the scope that the record went to.
            case .sealed, .orphaned, .forbidden, .movedOut: return false
            // No server takes it: the device lets go of the row, or takes it for the server's.
            case .pruned, .assumed: return false
            // The app took it back, or the server's row says the same.
            case .reverted, .deleted, .matched: return false
            // The comparison of an unseen write decides what of it is an edit.
            case .compared, .unseen: return false
            // There is nothing left that a delete would take away.
            case .tombstone, .verdict, .replayed: return step.before.local != .deleted
            case .edited, .decided, .refusalForgotten, .dropped, .blocked, .released, .seedBack, .putOff, .resumed,
                .movedIn,
                .arrival, .departureSealed, .row, .versionNoted, .caughtUp, .refetchNeeded, .refetched,
                .conflictFound, .refused, .accepted, .named, .accessLost, .scopeLeft, .followed, .orphanTaken,
                .historyLost, .captureLost, .wroteUnseen, .deletedUnseen, .captureFound:
                return true
            }
        }
        #expect(lost.isEmpty, "\(lost)")
    }

    @Test("An edit in flight ends by its verdict, or is orphaned")
    func flights() {
        let lost = Self.steps { step in
            guard step.before.inFlight != .none, step.after.inFlight == .none else { return false }
            switch step.event {
            case .verdict, .orphaned: return false
            case .edited, .reverted, .deleted, .decided, .refusalForgotten, .sealed, .dropped, .blocked, .released,
                .forbidden, .pruned, .assumed, .seedBack, .putOff, .resumed, .movedIn, .movedOut, .arrival,
                .departureSealed, .row, .tombstone,
                .matched, .versionNoted, .caughtUp, .refetchNeeded, .refetched, .conflictFound, .refused,
                .accepted, .named, .accessLost, .scopeLeft, .followed, .orphanTaken, .historyLost, .replayed,
                .captureLost, .wroteUnseen, .deletedUnseen, .captureFound, .unseen, .compared:
                return true
            }
        }
        #expect(lost.isEmpty, "\(lost)")
    }

    @Test(
        "A scope that is not followed has told nothing, and nothing goes there but along with a question for it"
    )
    func strangers() {
        let wrong = RecordMachine.reachable(Self.reduced).filter { machine in
            switch machine.access {
            case .followed: false
            case .lost: machine.base != .absent || machine.knowledge != .covered
            case .unfollowed:
                machine.base != .absent || machine.knowledge != .covered || machine.inFlight != .none
            }
        }
        #expect(wrong.isEmpty, "\(wrong.prefix(5).map(\.outline))")
    }

    @Test("From every state a record comes to rest")
    func rest() {
        // Whatever is queued, in flight or blocked: the events of a calm network end it.
        let calm: [Event] = [
            .followed, .resumed, .released, .refusalForgotten, .compared(.present), .captureFound,
            .verdict(.taken, .present),
            .arrival(.taken), .verdict(.taken, .gone), .departureSealed, .verdict(.taken, .gone), .sealed(.write),
            .sealed(.delete), .verdict(.taken, .present), .dropped, .accepted, .refetched, .caughtUp,
        ]
        let restless = RecordMachine.reachable(Self.reduced).filter { start in
            var machine = start
            for event in calm { _ = machine.handle(event) }
            return machine.local != .clean || machine.queue != .idle || machine.inFlight != .none
                || machine.place.isLeaving
        }
        #expect(restless.isEmpty, "\(restless.prefix(5).map(\.outline))")
    }
}
