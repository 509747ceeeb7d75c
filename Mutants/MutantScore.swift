import Foundation
import Synchronization
import TidemarkWire

/// Plays worlds with each of the planted bugs in the program, until one of them fails that does not fail without it.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
package struct MutantScore {
    /// What became of one bug.
    struct Entry {
        var mutant: Mutant
        /// Worlds that were played for it.
        var worlds = 0
        /// Worlds that went another way than they do without it, and ended well: counted where nothing was found.
        var differing: [String] = []
        var seconds = 0.0
        /// The world that it was found in, and what did not hold there.
        var found: (app: String, seed: UInt64, reason: String)?
    }

    /// The number of a world: each is of another app than the one before.
    private typealias Place = Int

    /// Longer worlds than usual: each begins with the same work.
    private static let stepLimit = 80

    private let apps: [(name: String, simulation: Simulation)]
    /// Per thread a worker for each app.
    private let threads: [[Worker]]
    private let places: Range<Place>
    /// How worlds end without a bug, as far as that was asked.
    private var sound: [Place: WorldEnd] = [:]

    init(of apps: [(name: String, app: SimulatedApp)], worlds: Int) async throws {
        self.apps = apps.map { name, app in
            var simulation = Simulation(of: app)
            simulation.stepLimit = Self.stepLimit
            return (name, simulation)
        }
        var threads: [[Worker]] = []
        for _ in 0..<max(1, ProcessInfo.processInfo.activeProcessorCount) {
            var workers: [Worker] = []
            for (_, simulation) in self.apps {
                workers.append(Worker(simulation: simulation, laboratory: try await Laboratory(app: simulation.app)))
            }
            threads.append(workers)
        }
        self.threads = threads
        places = 0..<worlds
    }

    mutating func score(_ mutant: Mutant) async -> Entry {
        let start = ContinuousClock().now
        var entry = Entry(mutant: mutant)
        var ends: [Place: WorldEnd] = [:]
        var next = places.lowerBound
        while next < places.upperBound {
            let unsound = Set(sound.filter { $0.value.failure != nil }.keys)
            Mutant.planted = mutant
            let played = await play((next..<places.upperBound).filter { !unsound.contains($0) }, untilFailure: true)
            Mutant.planted = nil
            ends.merge(played) { $1 }
            guard let place = played.filter({ $0.value.failure != nil }).keys.min() else { break }
            if await soundEnd(place).failure == nil, let reason = ends[place]?.failure {
                entry.found = (apps[place % apps.count].name, seed(place), reason)
                break
            }
            ends[place] = nil
            next = place + 1
        }
        if entry.found == nil { entry.differing = await differing(ends) }
        entry.worlds = ends.count
        entry.seconds = (ContinuousClock().now - start) / .seconds(1)
        return entry
    }

    /// The worlds that fail without any bug, as far as they were asked for.
    var unsound: [(app: String, seed: UInt64, reason: String)] {
        sound.sorted { $0.key < $1.key }.compactMap { place, end in
            end.failure.map { (apps[place % apps.count].name, seed(place), $0) }
        }
    }

    /// Another one for each app: the same seed would do the same things to all of them.
    private func seed(_ place: Place) -> UInt64 { UInt64(place) + 1 }

    private mutating func soundEnd(_ place: Place) async -> WorldEnd {
        if let known = sound[place] { return known }
        let end = await play([place], untilFailure: false)[place] ?? WorldEnd()
        sound[place] = end
        return end
    }

    private mutating func differing(_ ends: [Place: WorldEnd]) async -> [String] {
        let asked = ends.keys.filter { sound[$0] == nil }.sorted()
        sound.merge(await play(asked, untilFailure: false)) { $1 }
        return ends.keys.sorted().filter { sound[$0]?.trace != ends[$0]?.trace }
            .map { "\(apps[$0 % apps.count].name) \(seed($0))" }
    }

    /// Plays worlds on all threads. With `untilFailure` it ends after the first that fails, and all before that are
    /// among the result.
    private func play(_ places: [Place], untilFailure: Bool) async -> [Place: WorldEnd] {
        guard !places.isEmpty else { return [:] }
        let source = SeedSource(0...UInt64(places.count - 1))
        return await withTaskGroup(of: [Place: WorldEnd].self) { group in
            for workers in threads {
                group.addTask {
                    var ends: [Place: WorldEnd] = [:]
                    while let index = source.next() {
                        let place = places[Int(index)]
                        let end = await WorldEnd(seed: seed(place), workers[place % workers.count])
                        ends[place] = end
                        if untilFailure, end.failure != nil { source.end() }
                    }
                    return ends
                }
            }
            return await group.reduce(into: [:]) { $0.merge($1) { $1 } }
        }
    }
}

/// How a world ended.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
private struct WorldEnd: Sendable {
    var trace: UInt64?
    var failure: String?

    init() {}

    init(seed: UInt64, _ worker: Worker) async {
        do { trace = try await worker.play(worker.simulation.script(seed: seed)).trace } catch {
            failure = (error as? Simulation.Failure)?.reason ?? "\(error)"
        }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension MutantScore {
    /// Where a bug needs what one app does, and that seldom, no world of the others is played.
    private static let homes: [Mutant: String] = [
        .deleteReachesOtherScope: "shelf", .retentionFloorIgnored: "task", .danglingReferencesLeft: "task",
        .absentParentDeleted: "task", .manifestMissesRows: "task",
        .shownUnverified: "album", .evictedUnsent: "album", .partTakenForWhole: "album", .uploadBeginsAnew: "album",
        .sentAlthoughThere: "album", .lostBlobsNotOffered: "album", .offsetUnchecked: "album",
        .blobHashUnchecked: "album", .partOfAnyCaller: "album", .blobsNotRetained: "album", .blobNamesUnread: "album",
    ]

    /// `--list`, or `BUG [--app NAME] [--worlds COUNT]`; returns whether the bug was found.
    package static func run(
        _ apps: [(name: String, app: SimulatedApp)], _ words: ArraySlice<String>
    ) async throws -> Bool {
        var (apps, worlds, words) = (apps, 5000, words)
        guard let mutant = words.popFirst().flatMap(Mutant.init(rawValue:)) else {
            for mutant in Mutant.allCases { print(mutant.rawValue) }
            return true
        }
        while let word = words.popFirst(), let value = words.popFirst() {
            switch word {
            case "--app": apps = apps.filter { $0.name == value }
            case "--worlds": worlds = Int(value) ?? worlds
            default: break
            }
        }
        if let home = homes[mutant] { apps = apps.filter { $0.name == home } }
        var score = try await MutantScore(of: apps, worlds: worlds)
        let entry = await score.score(mutant)
        print(entry.line)
        for (app, seed, reason) in score.unsound { print("  fails without a bug: \(app) \(seed): \(reason.firstLine)") }
        return entry.found != nil
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension MutantScore.Entry {
    fileprivate var line: String {
        let name = mutant.rawValue.padding(toLength: 32, withPad: " ", startingAt: 0)
        guard let (app, seed, reason) = found else {
            let places = differing.isEmpty ? "" : " (\(differing.prefix(5).joined(separator: ", ")) …)"
            return name + "SURVIVES \(worlds) worlds in \(Int(seconds)) s; \(differing.count) go another way\(places)"
        }
        return name + "\(app) \(seed), \(Int(seconds)) s: \(reason.firstLine)"
    }
}

extension String {
    fileprivate var firstLine: String { String(prefix { !$0.isNewline }.prefix(200)) }
}
