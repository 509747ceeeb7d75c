import Foundation
import GRDB
import Tidemark
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting

/// Measures what the README says, side by side in one run: `make bench`, with fewer rows `make bench ROWS=10000`.
///
/// Each figure is the median of three rounds. Machines differ; the ratios are what to compare. With `blobs` as its
/// first word it measures attachments instead: `Benchmarks/blob-speed`.
@main
struct Benchmarks {
    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        if words.first == "blobs" { return await blobs(Array(words.dropFirst())) }
        let rows = words.first.flatMap { Int($0) } ?? 100_000
        let bench = Bench(rows: rows)
        print("\(rows) rows of about 290 bytes; medians of \(Bench.rounds) rounds\n")
        try await bench.capture()
        try await bench.transfer()
        try await bench.standing()
        try await bench.waits()
        try await bench.fields()
        try await bench.curve()
        try await bench.size()
    }

    private static func blobs(_ words: [String]) async {
        #if canImport(Glibc)
            await BlobBench.run(words)
        #else
            print("attachments are measured on Linux, where a process can read another one's memory figures")
        #endif
    }
}

/// Prints one line of the table.
func report(_ name: String, _ count: Int, _ seconds: Double, against baseline: Double? = nil) {
    let ratio = baseline.map { String(format: "%.2f× the time of plain SQLite", seconds / $0) } ?? ""
    let rate = String(format: "%9.0f/s", Double(count) / seconds)
    print(name.padding(toLength: 44, withPad: " ", startingAt: 0), String(format: "%8.3f s", seconds), rate, ratio)
}

/// The median of some seconds.
func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

/// Seconds that some work takes.
func seconds(_ work: () async throws -> Void) async rethrows -> Double {
    let clock = ContinuousClock()
    let start = clock.now
    try await work()
    let parts = (clock.now - start).components
    return Double(parts.seconds) + Double(parts.attoseconds) / 1e18
}
