import Foundation
import TidemarkCore

/// Scans through the worlds of an exploration, on one thread.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct Explorer: Sendable {
    let exploration: Exploration
    let laboratory: Laboratory

    /// Plays one world after the other, until there is no edge that was not taken.
    func explore(_ graph: StateGraph) {
        while !graph.isOver {
            if let depth = exploration.depthLimit { visit(graph, within: depth) } else { scan(graph) }
            if let report = graph.news { exploration.progress(report) }
        }
    }

    /// Plays a world from the beginning to where nothing new can come of it.
    private func scan(_ graph: StateGraph) {
        play(exploration.prelude, graph) { world, steps in
            var place = try graph.isEmpty ? begin(world, graph) : 0
            while true {
                switch graph.next(at: place) {
                case .end: return nil
                case .known(let edge, let end):
                    steps += edge
                    for step in edge { try world.perform(step) }
                    place = end
                case .new(let move, let victim):
                    let (end, quiet) = try take(move, victim, from: place, in: world, graph, &steps)
                    guard let end, quiet == nil else { return quiet }
                    place = end
                }
            }
        }
    }

    /// Plays the steps to the world that was reached first of those with an edge that nobody has taken, and takes it.
    private func visit(_ graph: StateGraph, within depth: Int) {
        if let errand = graph.nearest(within: depth) {
            play(exploration.prelude + errand.path, graph) { world, steps in
                try take(errand.move, errand.victim, from: errand.place, in: world, graph, &steps).quiet
            }
        } else if graph.isEmpty {
            play(exploration.prelude, graph) { world, _ in
                _ = try begin(world, graph)
                return nil
            }
        } else {
            // Others are on the last edges of this depth.
            Thread.sleep(forTimeInterval: 0.001)
        }
    }

    /// - Parameter body: what else is played; gives the time that it took to be in sync, where it came to that.
    private func play(_ path: [Step], _ graph: StateGraph, _ body: (World, inout [Step]) throws -> Int64?) {
        var steps = path
        var quiet: Int64?
        do {
            let world = try World(in: laboratory, plan: exploration.plan)
            defer { world.end() }
            for step in path { try world.perform(step) }
            quiet = try body(world, &steps)
        } catch {
            graph.fail(Simulation.Failure(error, in: Simulation.Script(plan: exploration.plan, steps: steps)))
        }
        graph.scanned(steps.count, quiet: quiet)
    }

    /// - Returns: where it led, `nil` if nowhere; and the time that it took to be in sync, where nothing was under way.
    private func take(
        _ move: Move, _ victim: Int?, from place: Int, in world: World, _ graph: StateGraph, _ steps: inout [Step]
    ) throws -> (place: Int?, quiet: Int64?) {
        steps += move.steps
        for step in move.steps { try world.perform(step) }
        if let victim, let process = world.devices[victim].process, process.isAlive {
            process.remaining = nil
            steps.remove(at: steps.count - move.steps.count)
            return (graph.survived(at: place, move, victim), nil)
        }
        let (end, isNew) = try arrive(world, graph, move.budget, from: place, by: move.steps)
        guard isNew, world.messages.isEmpty else { return (end, nil) }
        return (end, try world.calm(limit: exploration.simulation.calmLimit.milliseconds))
    }

    private func begin(_ world: World, _ graph: StateGraph) throws -> Int {
        try arrive(world, graph, exploration.budget, from: nil, by: []).place
    }

    private func arrive(
        _ world: World, _ graph: StateGraph, _ budget: Budget, from origin: Int?, by steps: [Step]
    ) throws -> (place: Int, isNew: Bool) {
        let outline = try WorldOutline(world, laboratory.reader, hasBackup: budget.upheavals > 0)
        let outlook = try Outlook(world, hasEdits: budget.edits > 0)
        return graph.arrive(at: outline.hash, outlook, budget, from: origin, by: steps)
    }

    func shortened(_ failure: Simulation.Failure) -> Simulation.Failure {
        Worker(simulation: exploration.simulation, laboratory: laboratory).shortened(failure, seed: nil)
    }
}
