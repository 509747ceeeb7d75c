import Synchronization

/// All worlds that were reached, the edges between them, and the edges that nobody has taken yet; for several threads.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class StateGraph: Sendable {
    fileprivate struct Node {
        var outlook: Outlook
        var budget: Budget
        /// The edge that is taken next, and whom it kills where.
        var place = 0
        var victim = 0
        var death = 0
        var hasMore = true
        /// The edges out that were taken, and where they lead.
        var edges: [(steps: [Step], end: Int)] = []
        /// How many of them lead to more edges not taken, or are being taken.
        var openEdges = 0
        var origins: [Int] = []
        /// The edge by which it was reached first.
        var first: (origin: Int, steps: [Step])?
        var depth = 0

        var isDone: Bool { !hasMore && openEdges == 0 }
    }

    fileprivate struct State {
        var nodes: [Node] = []
        /// Nodes of the same world differ in what is left to happen.
        var known: [UInt64: [Int]] = [:]
        var report = Exploration.Report()
        var failure: Simulation.Failure?
        var isFull = false
        /// The first node that may have edges which nobody has taken, where they are taken in that order.
        var nearest = 0
        var generator = SplitMix64(seed: 1)
        let start = ContinuousClock().now
        var told = ContinuousClock().now
    }

    /// Where a scan goes on from a node.
    enum Turn: Sendable {
        case new(Move, victim: Int?)
        case known([Step], end: Int)
        case end
    }

    private let state = Mutex(State())
    private let deviceCount: Int
    private let limit: Int

    private let isBreadthFirst: Bool

    init(deviceCount: Int, limit: Int, isBreadthFirst: Bool) {
        (self.deviceCount, self.limit, self.isBreadthFirst) = (deviceCount, limit, isBreadthFirst)
    }

    var failure: Simulation.Failure? { state.withLock(\.failure) }
    var report: Exploration.Report { state.withLock(\.present) }

    /// How far it has come, where it was not told for a while.
    var news: Exploration.Report? {
        state.withLock { state in
            guard ContinuousClock().now - state.told >= .seconds(10) else { return nil }
            state.told = ContinuousClock().now
            return state.present
        }
    }

    var isEmpty: Bool { state.withLock(\.nodes.isEmpty) }

    /// Whether every edge from the beginning was taken, or it has to end before that.
    var isOver: Bool {
        state.withLock { $0.failure != nil || $0.isFull || $0.nodes.first?.isDone == true }
    }

    func fail(_ failure: Simulation.Failure) { state.withLock { $0.failure = $0.failure ?? failure } }

    func scanned(_ steps: Int, quiet: Int64?) {
        state.withLock { state in
            state.report.scans += 1
            state.report.longestScan = max(state.report.longestScan, steps)
            guard let quiet else { return }
            state.report.calms += 1
            state.report.longestCalm = max(state.report.longestCalm, .milliseconds(quiet))
        }
    }

    // MARK: Going on

    func next(at place: Int) -> Turn {
        state.withLock { state in
            guard state.failure == nil, !state.isFull else { return .end }
            if state.nodes[place].hasMore, let (move, victim) = state.nodes[place].take(deviceCount) {
                state.nodes[place].openEdges += 1
                return .new(move, victim: victim)
            }
            state.propagateDone(from: place)
            // Not always the same one: a scan is short where all around it is done.
            let edges = state.nodes[place].edges.filter { $0.end > place && !state.nodes[$0.end].isDone }
            let edge = edges.randomElement(using: &state.generator)
            return edge.map { .known($0.steps, end: $0.end) } ?? .end
        }
    }

    /// The next edge out of the world that was reached first of those that have one, with the steps to there.
    ///
    /// - Returns: `nil` where there is none as long as nobody comes back from another.
    func nearest(within depth: Int) -> (place: Int, path: [Step], move: Move, victim: Int?)? {
        state.withLock { state in
            guard state.failure == nil, !state.isFull else { return nil }
            while state.nearest < state.nodes.count {
                let place = state.nearest
                if state.nodes[place].depth < depth, let (move, victim) = state.nodes[place].take(deviceCount) {
                    state.nodes[place].openEdges += 1
                    return (place, state.path(to: place), move, victim)
                }
                state.nodes[place].hasMore = false
                state.propagateDone(from: place)
                state.nearest += 1
            }
            return nil
        }
    }

    /// An edge that was taken has led to a world.
    ///
    /// - Parameter origin: `nil` for the beginning of all edges.
    /// - Returns: the world's place, and whether it was not known before.
    func arrive(
        at hash: UInt64, _ outlook: Outlook, _ budget: Budget, from origin: Int?, by steps: [Step]
    ) -> (place: Int, isNew: Bool) {
        state.withLock { state in
            let isNew = state.known[hash] == nil
            let places = state.known[hash] ?? []
            let place: Int
            if let known = places.first(where: { state.nodes[$0].budget.covers(budget) }) {
                place = known
            } else {
                place = state.nodes.count
                state.nodes.append(Node(outlook: outlook, budget: budget))
                if let origin {
                    state.nodes[place].first = (origin, steps)
                    state.nodes[place].depth = state.nodes[origin].depth + 1
                }
                state.known[hash, default: []].append(place)
                // Edges not taken of a node with less left to happen are taken from here; breadth first it is too far.
                for other in places where !isBreadthFirst && budget.covers(state.nodes[other].budget) {
                    state.nodes[other].hasMore = false
                    state.propagateDone(from: other)
                }
            }
            state.report.states = state.known.count
            state.isFull = state.report.states >= limit
            if let origin { state.link(origin, place, steps) }
            return (place, isNew)
        }
    }

    /// Nobody died on the way: it is the same as the one without a death, and so are those with a later one.
    func survived(at place: Int, _ move: Move, _ victim: Int) -> Int? {
        state.withLock { state in
            state.nodes[place].skip(victim, in: move, deviceCount)
            state.nodes[place].openEdges -= 1
            let end = state.nodes[place].edges.first { $0.steps == Array(move.steps.dropFirst()) }?.end
            state.propagateDone(from: place)
            return end
        }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension StateGraph.State {
    fileprivate var present: Exploration.Report {
        var report = report
        report.depth = nearest < nodes.count ? nodes[nearest].depth : nodes.last?.depth ?? 0
        report.duration = ContinuousClock().now - start
        return report
    }

    fileprivate func path(to place: Int) -> [Step] {
        var edges: [[Step]] = []
        var place = place
        while let first = nodes[place].first {
            edges.append(first.steps)
            place = first.origin
        }
        return edges.reversed().flatMap(\.self)
    }

    fileprivate mutating func link(_ origin: Int, _ place: Int, _ steps: [Step]) {
        report.transitions += 1
        nodes[origin].edges.append((steps, place))
        // Back to an older one there may be a circle: an app that is killed and started again. The first edge to each
        // comes from an older one.
        if place > origin, !nodes[place].isDone {
            nodes[place].origins.append(origin)
        } else {
            nodes[origin].openEdges -= 1
        }
        propagateDone(from: origin)
    }

    /// Tells the worlds before one that has nothing more to offer.
    fileprivate mutating func propagateDone(from place: Int) {
        var done = [place]
        while let place = done.popLast() {
            guard nodes[place].isDone else { continue }
            for origin in nodes[place].origins {
                nodes[origin].openEdges -= 1
                done.append(origin)
            }
            nodes[place].origins = []
        }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension StateGraph.Node {
    /// The next edge out.
    fileprivate mutating func take(_ deviceCount: Int) -> (move: Move, victim: Int?)? {
        let moves = outlook.moves(budget, devices: deviceCount)
        while place < moves.count {
            let move = moves[place]
            if death == 0 {
                death = 1
                return (move, nil)
            }
            if victim < move.active.count, let killing = move.killing(move.active[victim], at: death) {
                death += 1
                return (killing, move.active[victim])
            }
            (place, victim, death) = (place + 1, 0, 0)
        }
        hasMore = false
        return nil
    }

    /// Skips a victim that was killed in vain, unless another thread that killed the same one has done so.
    fileprivate mutating func skip(_ device: Int, in killing: Move, _ deviceCount: Int) {
        let moves = outlook.moves(budget, devices: deviceCount)
        guard place < moves.count, moves[place].steps.elementsEqual(killing.steps.dropFirst()),
            victim < moves[place].active.count, moves[place].active[victim] == device
        else { return }
        (victim, death) = (victim + 1, 1)
    }
}
