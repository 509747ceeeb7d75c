#if Server
    import Foundation
    import TidemarkSQLite
    import TidemarkServer
    import Testing

    @testable import TidemarkCommand
    import TidemarkWire

    /// `tidemark compact` as an operator meets it.
    @Suite(.serialized) struct CompactTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private static let day: Int64 = 86_400_000

        /// A store with one deletion of a hundred days ago; its clock of ages stands there too, if asked for.
        private func store(clockStands: Bool) async throws {
            let store = try SQLiteStore(path: folder.path("sync.sqlite"))
            let then = Int64(Date.now.timeIntervalSince1970 * 1000) - 100 * Self.day
            var configuration = SyncServer.Configuration()
            configuration.now = { Date(milliseconds: then) }
            let server = SyncServer(store: store, configuration: configuration)
            try await server.commit(to: "w") { $0.upsert("task", id: "a", ["n": 1]) }
            try await server.commit(to: "w") { $0.delete("task", id: "a") }
            if clockStands { try await server.compact() }
            try store.close()
            try "retention: 30d\nforgetDevicesAfter: 60d\n".write(
                toFile: folder.path("tidemark.yaml"), atomically: true, encoding: .utf8)
        }

        private func compact(_ flags: [String], config: Bool = true) async throws -> (Int32, String, String) {
            let config = config ? ["--config", folder.path("tidemark.yaml")] : []
            return try await ChildProcess(
                ServeTests.command, ["compact", "--store", "sqlite:" + folder.path("sync.sqlite")] + config + flags
            ).result()
        }

        private func report(_ flags: [String]) async throws -> CompactReport {
            let (status, output, errors) = try await compact(flags + ["--json"])
            #expect(status == 0, "\(errors)")
            return try JSONDecoder().decode(CompactReport.self, from: Data(output.utf8))
        }

        @Test func whatIsOldGoesAfterARehearsal() async throws {
            try await store(clockStands: false)
            let (_, kept, _) = try await compact([], config: false)
            #expect(kept.contains("0 deletions,") && !kept.contains("for ever"), "\(kept)")
            // Nothing ran for a hundred days that the store knows of, so this machine's clock has to be vouched for.
            let (status, output, _) = try await compact(["--dry-run", "--trust-clock"])
            #expect(status == 0)
            #expect(output == "would remove 1 deletion, 0 devices, 0 lanes\n")
            let rehearsed = try await report(["--dry-run", "--trust-clock"])
            #expect(rehearsed.dryRun && rehearsed.expired == 1 && rehearsed.replaced == nil)
            #expect(try await report(["--trust-clock"]).expired == 1)
            #expect(try await report([]).expired == 0)
            try "retention: forever\nexpireEvents: true".write(
                toFile: folder.path("tidemark.yaml"), atomically: true, encoding: .utf8)
            let (_, forever, _) = try await compact([])
            #expect(forever.contains("0 deletions and events") && forever.contains("kept for ever"), "\(forever)")
        }

        @Test func aClockThatIsFarAheadHasToBeTrusted() async throws {
            try await store(clockStands: true)
            let (status, output, _) = try await compact([])
            #expect(status == 0)
            #expect(output.contains("0 deletions") && output.contains("--trust-clock"), "\(output)")
            #expect(try await report([]).clockBehind > 99 * 86_400)
            let start = ContinuousClock.now
            #expect(try await report(["--trust-clock"]).expired == 1)
            let behind = try await report([]).clockBehind
            // No more than has passed since; on a machine with nothing else to do that is less than a second.
            #expect(behind <= (ContinuousClock.now - start).components.seconds)
        }

        @Test func aStoreThatIsNotThereIsNotMade() async throws {
            let (status, output, errors) = try await compact([], config: false)
            #expect((status, output) == (1, ""))
            #expect(errors.contains("does not exist") && errors.contains("\nhint: "), "\(errors)")
            #expect(!FileManager.default.fileExists(atPath: folder.path("sync.sqlite")))
        }
    }
#endif
