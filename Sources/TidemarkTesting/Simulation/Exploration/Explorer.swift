import TidemarkCore

/// Walks through the worlds of an exploration, on one thread.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct Explorer: Sendable {
    let exploration: Exploration
    let laboratory: Laboratory

    /// Plays one world after the other, until there is no way that was not taken.
    func explore(_ atlas: Atlas) {
        while !atlas.isOver {
            walk(atlas)
            if let report = atlas.news { exploration.progress(report) }
        }
    }

    /// Plays a world from the beginning to where nothing new can come of it.
    private func walk(_ atlas: Atlas) {
        var steps = exploration.prelude
        var quiet: Int64?
        do {
            let world = try World(in: laboratory, plan: exploration.plan)
            defer { world.end() }
            for step in steps { try world.perform(step) }
            var place = 0
            if atlas.isEmpty { place = try arrive(world, atlas, exploration.budget, from: nil, by: []).place }
            walk: while steps.count - exploration.prelude.count < exploration.depthLimit {
                switch atlas.next(at: place) {
                case .end: break walk
                case .known(let way, let end):
                    steps += way
                    for step in way { try world.perform(step) }
                    place = end
                case .new(let move, let victim):
                    steps += move.steps
                    for step in move.steps { try world.perform(step) }
                    if let victim, let process = world.devices[victim].process, process.isAlive {
                        process.remaining = nil
                        steps.remove(at: steps.count - move.steps.count)
                        guard let end = atlas.survived(at: place, move) else { break walk }
                        place = end
                        continue
                    }
                    let (end, isNew) = try arrive(world, atlas, move.budget, from: place, by: move.steps)
                    place = end
                    if isNew, world.messages.isEmpty {
                        quiet = try world.calm(limit: exploration.simulation.calmLimit.milliseconds)
                        break walk
                    }
                }
            }
        } catch {
            atlas.fail(Simulation.Failure(error, in: Simulation.Script(plan: exploration.plan, steps: steps)))
        }
        atlas.walked(steps.count, quiet: quiet)
    }

    private func arrive(
        _ world: World, _ atlas: Atlas, _ budget: Budget, from origin: Int?, by steps: [Step]
    ) throws -> (place: Int, isNew: Bool) {
        let outline = try WorldOutline(world, laboratory.reader, hasBackup: budget.upheavals > 0)
        let outlook = try Outlook(world, hasEdits: budget.edits > 0)
        return atlas.arrive(at: outline.hash, outlook, budget, from: origin, by: steps)
    }

    func shortened(_ failure: Simulation.Failure) -> Simulation.Failure {
        Worker(simulation: exploration.simulation, laboratory: laboratory).shortened(failure, seed: nil)
    }
}
