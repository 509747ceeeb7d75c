#if Server
    import Foundation
    import GRDB

    /// Damage that no device may suffer from: a server that goes back in time.
    extension DemoStory {
        /// The server loses all that came after the copy, and the devices replay what they had sent.
        func loseHistory(_ report: inout DemoReport) async throws {
            say("")
            say("7. the server's disk is lost; the copy from before chapter 4 takes its place")
            let before = try await world.rowsOfServer()
            try await world.server.loseEverythingSinceTheCopy()
            let old = try await world.rowsOfServer()
            let lost = Set(before.keys).union(old.keys).filter { before[$0] != old[$0] }
            say("     server: \(lost.count) rows are as they were before the edits")
            for device in ["a.sqlite", "b.sqlite", "a.sqlite"] {
                say("     \(device.prefix(1).uppercased()): " + (try await world.sync(device).lines.first ?? ""))
            }
            let after = try await world.rowsOfServer()
            let missing = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
            report.replayed = lost.count - missing.count
            report.differences += missing.sorted().map { "the server has lost \($0)" }
            say("     server: \(missing.isEmpty ? "all" : "\(report.replayed)") of them are back")
        }
    }
#endif
