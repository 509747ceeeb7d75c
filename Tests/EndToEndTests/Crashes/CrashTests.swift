#if Server
    import Foundation
    import NIOCore
    import Testing

    @testable import TidemarkCommand

    /// Real processes that are killed at any moment: what was acknowledged is there, and nothing twice (I1, I8).
    @Suite(.serialized) struct CrashTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func token() async throws -> String {
            let process = try ChildProcess(
                ServeTests.command,
                [
                    "token", "--store", "sqlite:" + folder.path("sync.sqlite"), "--make-secret", "--sub", "ada",
                    "--scope", "w=rw",
                ])
            return await process.result().output.trimmingCharacters(in: .whitespacesAndNewlines)
        }

        /// One device: a lane in its own right, each edit a new record and a step of one counter. After a failure the
        /// same request goes out again, as it was, until it is answered.
        private actor Device {
            let name: String
            private(set) var acknowledged = 0
            private(set) var replays = 0
            private(set) var versions: Set<Int> = []

            init(_ name: String) { self.name = name }

            func push(to caller: Caller) async {
                let first = acknowledged * 2 + 1
                let record = upsert("\(name)-\(acknowledged + 1)", #""n":\#(acknowledged + 1)"#)
                let counter = upsert("\(name)-counter", #""n":\#(acknowledged + 1)"#)
                let answer = try? await caller.push(
                    [record, counter], lane: "lane-of-\(name)", from: first, path: "/sync/push")
                guard let answer, answer.status == 200, answer.results.count == 2 else {
                    try? await Task.sleep(for: .milliseconds(20))
                    return
                }
                acknowledged += 1
                for result in answer.results {
                    if let version = result["version"] as? Int { versions.insert(version) }
                    if result["replayed"] as? Bool == true { replays += 1 }
                }
            }
        }

        private func load(_ devices: [Device], _ caller: Caller, for time: Duration) async {
            let end = ContinuousClock.now + time
            await withTaskGroup(of: Void.self) { tasks in
                for device in devices {
                    tasks.addTask { while ContinuousClock.now < end { await device.push(to: caller) } }
                }
            }
        }

        private func check(_ devices: [Device], _ caller: Caller) async throws {
            let rows = try await caller.pullAll()
            var expected = 0
            for device in devices {
                let count = await device.acknowledged
                let name = device.name
                let records = rows.filter { ($0["id"] as? String)?.hasPrefix("\(name)-") == true }
                let held = Set(records.compactMap { $0["id"] as? String })
                // The last request may have been applied without its answer; never more than that.
                #expect(held.isSuperset(of: (0..<count).map { "\(name)-\($0 + 1)" }))
                #expect(records.count <= count + 2)
                let counter = records.first { $0["id"] as? String == "\(name)-counter" }?["data"] as? [String: Any]
                let steps = counter?["n"] as? Int ?? 0
                #expect(steps == count || steps == count + 1)
                #expect(await device.versions.count == count * 2, "every operation has a version of its own")
                expected += steps * 2
            }
            let head = try await caller.get("/sync/changes?scope=w&limit=1").member("head") as? Int
            #expect(head == expected, "each operation was applied once")
        }

        @Test(.timeLimit(.minutes(3))) func killedUnderLoad() async throws {
            let token = try await token()
            let devices = (1...3).map { Device("device\($0)") }
            for cycle in 0..<20 {
                let server = try await ServerProcess.start(folder.path("sync.sqlite"))
                let caller = Caller(url: server.url, token: token, timeout: .milliseconds(400))
                async let load: Void = load(devices, caller, for: .milliseconds(260))
                try await Task.sleep(for: .milliseconds(120 + cycle * 17 % 130))
                await server.process.end()
                await load
            }
            let server = try await ServerProcess.start(folder.path("sync.sqlite"))
            let caller = Caller(url: server.url, token: token, timeout: .milliseconds(400))
            try await check(devices, caller)
            // Whatever was in flight is sent again and gets its first verdict, and then all is accounted for.
            for device in devices { await device.push(to: caller) }
            try await check(devices, caller)
            #expect(await server.stop() == 0)
        }

        @Test(.timeLimit(.minutes(5))) func askedToEndUnderLoad() async throws {
            let token = try await token()
            let devices = (1...4).map { Device("device\($0)") }
            for _ in 0..<3 {
                let server = try await ServerProcess.start(folder.path("sync.sqlite"))
                let caller = Caller(url: server.url, token: token, timeout: .milliseconds(400))
                async let load: Void = load(devices, caller, for: .milliseconds(400))
                try await Task.sleep(for: .milliseconds(200))
                #expect(await server.stop() == 0)
                await load
            }
            let server = try await ServerProcess.start(folder.path("sync.sqlite"))
            try await check(devices, Caller(url: server.url, token: token, timeout: .milliseconds(400)))
            #expect(await server.stop() == 0)
        }
    }
#endif
