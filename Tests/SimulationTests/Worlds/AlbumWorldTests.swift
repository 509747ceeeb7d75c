import SampleApps
import Testing
import TidemarkTesting

/// Worlds of an app with attachments: bytes travel apart from rows, through cuts, full disks and restores (A12).
@Suite("Worlds with attachments")
struct AlbumWorldTests {
    @Test("no byte is lost, wrong or kept back, and all that can go wrong does")
    func sound() async throws {
        var simulation = Simulation(of: try #require(SampleApps["album"]))
        simulation.stepLimit = 80
        let report = try await simulation.run(seeds: 61...120)
        #expect(report.worlds == 60)
        for what in [
            "uploaded", "reuploaded", "fetched", "made room", "collected", "PUT 202", "PUT 409", "PUT 503", "GET 404",
        ] { #expect(report.files[what] != nil, "\(what) of \(report.files)") }
        for place in ["app before fileWrite", "app before filePlace", "app after /sync/blobs"] {
            #expect(report.deaths[place] != nil, "\(place) of \(report.deaths)")
        }
    }

    /// Found by longer surveys: a record that its device held up for a week, until the server had collected its bytes
    /// (479, 675, 890), one that was quarantined before its bytes were sent (461), one that moved with bytes that
    /// somebody else had put into it (1532), and faults of the oracle (419, 703, 901, 1983, 2535, 3502).
    @Test("worlds that failed once", arguments: [419, 461, 479, 675, 703, 890, 901, 1532, 1983, 2535, 3502])
    func former(seed: UInt64) async throws {
        var simulation = Simulation(of: try #require(SampleApps["album"]))
        simulation.stepLimit = 80
        let report = try await simulation.run(seeds: seed...seed)
        #expect(report.worlds == 1)
    }

    @Test("steps with files come back from a script")
    func script() throws {
        let simulation = Simulation(of: try #require(SampleApps["album"]))
        var kinds: Set<Substring> = []
        for seed in 1...60 as ClosedRange<UInt64> {
            let script = simulation.script(seed: seed)
            #expect(Simulation.Script(script.description) == script)
            for line in script.description.split(separator: "\n") {
                let words = line.split(separator: " ")
                if words.count > 2, words[1] == "file" || words[1] == "disk" { kinds.insert(words[2]) }
            }
        }
        #expect(kinds.isSuperset(of: ["fetch", "look", "pin", "unpin", "evict", "retry", "full", "free"]))
        let beginning = "world seed 1 devices 1 users 1 page 1\n"
        for line in ["0 file sing 1", "0 file fetch", "0 disk round", "server disk"] {
            #expect(Simulation.Script(beginning + line) == nil)
        }
    }
}
