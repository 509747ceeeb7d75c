#if Server
    import GRDB
    import MetricsTestKit
    import Testing
    import Tidemark
    import TidemarkMetrics
    import TidemarkServer
    import TidemarkTesting

    @Suite("A device's numbers through swift-metrics")
    struct DeviceMetricsTests {
        @Test("the measures between two reports are told by entity, direction and stage, and by no scope")
        func report() async throws {
            let server = SyncServer(store: MemoryStore())
            let file = try DatabaseQueue()
            try await file.write { db in try db.execute(sql: "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT)") }
            let engine = try SyncEngine(
                for: file, tables: [.table("note")], scopes: ["secret:7"],
                transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
            let told = TestMetrics()
            let metrics = DeviceMetrics(engine, factory: told)
            try await engine.syncNow()
            try await metrics.report()
            #expect(told.counters.isEmpty)
            let before = try await engine.measures()
            try await file.write { db in try db.execute(sql: "INSERT INTO note VALUES ('n1', 'x')") }
            try await engine.syncNow()
            try await metrics.report()
            let after = try await engine.measures()
            let sent = try told.expectCounter(
                "tidemark_device_entity_bytes", [("entity", "note"), ("direction", "sent")])
            #expect(sent.totalValue == Int64(after.entities["note"]?.bytesSent ?? 0) && sent.totalValue > 0)
            let requests = try told.expectCounter("tidemark_device_requests")
            #expect(requests.totalValue == Int64(after.requests - before.requests))
            #expect(try told.expectGauge("tidemark_device_checkpoint_lag_versions").lastValue == 0)
            let dimensions = told.counters.flatMap { $0.dimensions.map(\.1) }
            #expect(!dimensions.contains { $0.contains("secret") })
        }
    }
#endif
