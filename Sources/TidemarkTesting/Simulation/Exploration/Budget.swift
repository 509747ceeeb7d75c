/// How often each kind of thing may still happen in an explored world.
package struct Budget: Hashable, Sendable {
    /// Edits, on whichever device.
    package var edits: UInt8 = 3
    /// Messages that are lost, cut, repeated, or answered by a server that cannot.
    package var losses: UInt8 = 1
    /// Apps that are killed, at once or in the midst of what they do next.
    package var crashes: UInt8 = 1
    /// Things that happen to the server's store: opened anew, put back, swept, compacted; from the second on, backed
    /// up.
    package var upheavals: UInt8 = 1
    /// Syncs that the user asks for.
    package var syncs: UInt8 = 0
    /// Waits until the next timer.
    package var waits: UInt8 = 3

    package init() {}

    /// Nothing happens but what is under way.
    package static var none: Budget {
        var budget = Budget()
        (budget.edits, budget.losses, budget.crashes, budget.upheavals) = (0, 0, 0, 0)
        (budget.syncs, budget.waits) = (0, 0)
        return budget
    }

    /// Whether all is left here that is left there.
    func covers(_ other: Budget) -> Bool {
        edits >= other.edits && losses >= other.losses && crashes >= other.crashes && upheavals >= other.upheavals
            && syncs >= other.syncs && waits >= other.waits
    }
}

/// An edge out of an explored world.
struct Move: Hashable, Sendable {
    var steps: [Step]
    /// What is left to happen after it.
    var budget: Budget
    /// The devices that do something in it, and so may be killed in the midst of it.
    var active: [Int] = []

    /// The same, with a device killed just after the `count`th use of its file or the wire. What is durable is the same
    /// just before the next one.
    func killing(_ device: Int, at count: Int) -> Move? {
        guard budget.crashes > 0 else { return nil }
        var move = self
        move.steps.insert(.kill(device, after: 2 * count - 1), at: 0)
        move.budget.crashes -= 1
        move.active = []
        return move
    }
}

extension Outlook {
    /// Everything that may happen next, apart from crashes in its midst. What may happen any time comes last, so that a
    /// scan is long before nothing is under way any more.
    func moves(_ budget: Budget, devices: Int) -> [Move] {
        var moves: [Move] = []
        func add(_ steps: Step..., cost: WritableKeyPath<Budget, UInt8>? = nil, active: [Int] = []) {
            var left = budget
            if let cost {
                guard left[keyPath: cost] > 0 else { return }
                left[keyPath: cost] -= 1
            }
            moves.append(Move(steps: steps, budget: left, active: active.filter { acts[$0] != nil }))
        }
        for device in 0..<devices {
            guard let acts = acts[device] else { continue }
            for act in acts {
                add(.edit(device: device, act: act, choice: 0), cost: \.edits, active: [device])
            }
            add(.sync(device), cost: \.syncs, active: [device])
            add(.kill(device, after: 0), cost: \.crashes)
        }
        if let wait { add(.wait(wait), cost: \.waits, active: Array(0..<devices)) }
        add(.server(.restart), cost: \.upheavals)
        if budget.upheavals > 1 { add(.server(.backUp), cost: \.upheavals) }
        add(.server(.restore), cost: \.upheavals)
        if hasOldRows {
            add(.server(.sweep), cost: \.upheavals)
            add(.server(.compact(7_200_000)), cost: \.upheavals)
        }
        for (place, letter) in letters.enumerated() {
            add(.pass(place, .isLost), cost: \.losses, active: [letter.device])
            if letter.isAnswer {
                add(.pass(place, .isCut(500)), cost: \.losses)
            } else {
                add(.pass(place, .isRepeated), cost: \.losses)
                add(.server(.fail(1)), .pass(place, .arrives), cost: \.losses)
            }
        }
        for device in 0..<devices where acts[device] == nil { add(.start(device)) }
        for (place, letter) in letters.enumerated() {
            add(.pass(place, .arrives), active: letter.isAnswer ? [letter.device] : [])
        }
        return moves
    }
}
