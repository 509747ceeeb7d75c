import TidemarkServer

/// One scope as a read or a write sees it, on a log that is its own for so long.
final class MemoryScope: ScopeWriter {
    var othersWait: Bool { false }
    var delaysOthers: Bool { false }
    let name: Scope
    let incarnation: Int64
    var log: MemoryLog
    /// Where the scope stands in the log; `nil` before the first write.
    private(set) var place: Int?
    var digests = DigestKeeper()
    /// How to take back what was written so far: to copy the log before each write would cost what the log holds.
    private var steps: [(MemoryScope) -> Void] = []

    init(_ name: Scope, in log: MemoryLog, incarnation: Int64) {
        self.name = name
        self.incarnation = incarnation
        self.log = log
        place = log.places[name]
    }

    var state: ScopeState { place.map { log.scopes[$0].state } ?? ScopeState() }

    func undo(by step: @escaping (MemoryScope) -> Void) { steps.append(step) }

    func attempt<Result>(_ body: () throws -> Result) throws -> Result {
        let (count, digests) = (steps.count, digests)
        do { return try body() } catch {
            while steps.count > count { steps.removeLast()(self) }
            self.digests = digests
            throw error
        }
    }

    /// The scope's place, which a first write gives it.
    func create(at moment: Int64) -> Int {
        if let place { return place }
        let (created, ageClock) = (log.scopes.count, log.ageClock)
        undo {
            $0.log.scopes.removeLast()
            $0.log.places[$0.name] = nil
            $0.log.ageClock = ageClock
            $0.place = nil
        }
        log.scopes.append(ScopeLog(name))
        log.places[name] = created
        // History begins to age with the store's first scope.
        log.ageClock = ageClock ?? moment
        place = created
        return created
    }

    /// Keeps the digests once, however many rows were appended.
    func finish() {
        guard let place else { return }
        for (entity, sums) in digests.stored { log.scopes[place].digests[Array(entity.utf8)] = sums }
    }
}

/// Thrown where something is stored under a name that is taken.
struct AlreadyStored: Error, CustomStringConvertible {
    let description: String
}
