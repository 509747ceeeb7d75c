import Foundation
import SampleApps
import Testing
import TidemarkTesting

/// Worlds that once broke a guarantee, as short as they could be made: each is a bug that is mended.
///
/// They stand in `Corpus`, a file for each subject. A world begins with a line that names its app and what was wrong,
/// goes on with its script as the simulator has printed it, and ends with an empty line:
///
/// ```text
/// # ledger: an answer to what this file's former owner sent is nobody's (I2)
/// world seed 1 devices 2 users 1 page 50
/// pass 0
/// ```
struct CorpusCase: Sendable, CustomTestStringConvertible {
    var name: String
    var app: String
    var script: String

    var testDescription: String { name }

    /// Those of all files, in the order of the files' names. What cannot be read is left out; `CorpusTests.whole`
    /// counts them.
    static let all: [CorpusCase] = files.flatMap { file in
        ((try? String(contentsOf: file, encoding: .utf8)) ?? "").components(separatedBy: "\n\n").compactMap(read)
    }

    private static var files: [URL] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Corpus")
        let files = try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return (files ?? []).filter { $0.pathExtension == "txt" }.sorted { $0.path < $1.path }
    }

    private static func read(_ text: String) -> CorpusCase? {
        let parts = text.split(separator: "\n", maxSplits: 1)
        guard parts.count == 2, let found = parts[0].wholeMatch(of: /# (\w+): (.+)/) else { return nil }
        return CorpusCase(name: String(found.2), app: String(found.1), script: String(parts[1]))
    }
}

@Suite("Worlds that once broke a guarantee")
struct CorpusTests {
    @Test("every world of the corpus is read, and no two have one name")
    func whole() {
        #expect(CorpusCase.all.count >= 131)
        #expect(Set(CorpusCase.all.map(\.name)).count == CorpusCase.all.count)
    }

    @Test("a bug that was found once stays mended", arguments: CorpusCase.all)
    func corpus(_ found: CorpusCase) async throws {
        let script = try #require(Simulation.Script(found.script))
        try await Simulation(of: try #require(SampleApps[found.app])).play(script)
    }
}
