import SampleApps
import Testing
import TidemarkTesting

/// Checks that steps of one word, which a setting puts between those of a world, change none of the others and come
/// back from a script. Returns what they do, by their next word.
func insertedSteps(_ word: String, by setting: WritableKeyPath<Simulation, Bool>) throws -> Set<Substring> {
    var simulation = Simulation(of: try #require(SampleApps["task"]))
    let plain = (1...40).map { simulation.script(seed: $0).description.split(separator: "\n") }
    simulation[keyPath: setting] = true
    var kinds: Set<Substring> = []
    for (seed, plain) in zip(UInt64(1)..., plain) {
        let script = simulation.script(seed: seed)
        let lines = script.description.split(separator: "\n")
        let inserted = lines.filter { $0.contains(" \(word) ") }
        #expect(lines.filter { !$0.contains(" \(word) ") } == plain)
        kinds.formUnion(inserted.map { $0.split(separator: " ")[2] })
        #expect(Simulation.Script(script.description) == script)
    }
    return kinds
}
