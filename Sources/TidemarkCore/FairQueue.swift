package import TidemarkWire

/// Work that waits for something that everybody shares, handed out in turns (I14): the next turn is that of the caller
/// whose last one is longest ago, and his turns go over the scopes that he waits in. However much one of them asks for,
/// another waits for the piece that is in work, and for no second one.
///
/// Within a scope the order is kept: what one caller asks there is done in the order in which it came.
package struct FairQueue<Work> {
    /// The works that one caller waits for, by scope.
    private struct Line {
        var works: [Scope: ArraySlice<Work>] = [:]
        /// His scopes, the one whose turn is next first.
        var scopes: [Scope] = []

        mutating func append(_ work: Work, in scope: Scope) {
            if works[scope] == nil { scopes.append(scope) }
            works[scope, default: []].append(work)
        }

        mutating func putBack(_ work: Work, in scope: Scope) {
            if works[scope] == nil { scopes.insert(scope, at: 0) }
            works[scope, default: []].insert(work, at: works[scope]?.startIndex ?? 0)
        }

        /// The first of the scopes whose oldest work may be handed out.
        func place(where isFree: (Scope, Work) -> Bool) -> Int? {
            scopes.firstIndex { scope in works[scope]?.first.map { isFree(scope, $0) } ?? false }
        }

        mutating func remove(in scope: Scope, where isMeant: (Work) -> Bool) -> Work? {
            guard let index = works[scope]?.firstIndex(where: isMeant) else { return nil }
            let work = works[scope]?.remove(at: index)
            if works[scope]?.isEmpty ?? true {
                works[scope] = nil
                scopes.removeAll { $0 == scope }
            }
            return work
        }

        mutating func remove(at place: Int) -> Work? {
            let scope = scopes.remove(at: place)
            let work = works[scope]?.popFirst()
            if works[scope]?.isEmpty ?? true { works[scope] = nil } else { scopes.append(scope) }
            return work
        }
    }

    /// Callers whose last turn is remembered although they wait for nothing, at most.
    private static var rememberedLimit: Int { 4096 }

    private var lines: [String: Line] = [:]
    /// The waiting callers, the one whose turn is next first.
    private var callers: [String] = []
    /// When each had his last turn, counted in turns.
    private var served: [String: Int] = [:]
    private var turns = 0
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    package mutating func append(_ work: Work, of caller: String, in scope: Scope) {
        if lines[caller] == nil { enter(caller) }
        lines[caller, default: Line()].append(work, in: scope)
        count += 1
    }

    /// Takes back what was handed out and not begun: it comes first when its caller's turn comes.
    package mutating func putBack(_ work: Work, of caller: String, in scope: Scope) {
        if lines[caller] == nil { enter(caller) }
        lines[caller, default: Line()].putBack(work, in: scope)
        count += 1
    }

    private mutating func enter(_ caller: String) {
        let last = served[caller, default: 0]
        var (low, high) = (0, callers.count)
        while low < high {
            let middle = (low + high) / 2
            if served[callers[middle], default: 0] > last { high = middle } else { low = middle + 1 }
        }
        callers.insert(caller, at: low)
    }

    /// The work that is handed out next, of those works that are free.
    package func first(where isFree: (Scope, Work) -> Bool = { _, _ in true }) -> Work? {
        for caller in callers {
            if let line = lines[caller], let place = line.place(where: isFree) {
                return line.works[line.scopes[place]]?.first
            }
        }
        return nil
    }

    /// Hands it out.
    package mutating func popFirst(where isFree: (Scope, Work) -> Bool = { _, _ in true }) -> Work? {
        for (turn, caller) in callers.enumerated() {
            guard let place = lines[caller]?.place(where: isFree) else { continue }
            let work = lines[caller]?.remove(at: place)
            callers.remove(at: turn)
            turns += 1
            // Forgetting reads all names, so it happens only once twice as many are remembered as wait.
            if served.count >= max(Self.rememberedLimit, 2 * callers.count) {
                served = served.filter { lines[$0.key] != nil }
            }
            served[caller] = turns
            if lines[caller]?.scopes.isEmpty ?? true { lines[caller] = nil } else { callers.append(caller) }
            count -= 1
            return work
        }
        return nil
    }

    /// Takes out what its caller waits for no longer; the others keep their order.
    package mutating func remove(of caller: String, in scope: Scope, where isMeant: (Work) -> Bool) -> Work? {
        guard let work = lines[caller]?.remove(in: scope, where: isMeant) else { return nil }
        if lines[caller]?.scopes.isEmpty ?? true {
            lines[caller] = nil
            callers.removeAll { $0 == caller }
        }
        count -= 1
        return work
    }

    package mutating func removeAll() -> [Work] {
        defer { self = FairQueue() }
        return lines.values.flatMap { line in line.works.values.flatMap { $0 } }
    }
}
