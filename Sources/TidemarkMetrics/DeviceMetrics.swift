#if Metrics || Server
    public import CoreMetrics
    public import Tidemark

    /// Tells swift-metrics what a device's engine measures (A20).
    ///
    /// ```swift
    /// let metrics = DeviceMetrics(sync)
    /// let telling = Task { while true { try await metrics.report(); try await Task.sleep(for: .seconds(60)) } }
    /// ```
    /// Dimensions are entities and stages, which the app's schema and this library bound. Scopes are none: a user may
    /// have thousands, whose names would say who he is, and each would be a time series for ever.
    public actor DeviceMetrics {
        private let engine: SyncEngine
        private let factory: any MetricsFactory
        private var told: SyncMeasures?
        /// Whether the last numbers were smaller than those that were told.
        private var isSmaller = false

        /// Makes one that has told nothing yet.
        public init(_ engine: SyncEngine, factory: any MetricsFactory = MetricsSystem.factory) {
            (self.engine, self.factory) = (engine, factory)
        }

        /// Tells what was measured since the last call. The first one tells where checkpoints stand and nothing else:
        /// the file's sums are older than the process, and its counters begin with it.
        ///
        /// - Throws: `SyncError` `database_failed` where the file cannot be read; the next call tells all then.
        public func report() async throws {
            let measures = try await engine.measures()
            let scopes = try await engine.status().scopes.values
            let (lags, ages) = (scopes.compactMap(\.lag), scopes.compactMap { $0.age() })
            gauge("checkpoint_lag_versions", Double(lags.max() ?? 0))
            gauge("checkpoint_age_seconds", (ages.max() ?? .zero) / .seconds(1))
            // The sums lack an answer while it is being taken in; those of a file that was put back are smaller for
            // longer.
            if let told, measures.requests < told.requests, !isSmaller {
                isSmaller = true
                return
            }
            isSmaller = false
            if let told { tell(measures, since: told) }
            told = measures
        }

        private func tell(_ now: SyncMeasures, since last: SyncMeasures) {
            count("requests", now.requests - last.requests)
            count("bytes", now.bytesSent - last.bytesSent, [("direction", "sent")])
            count("bytes", now.bytesReceived - last.bytesReceived, [("direction", "received")])
            count("changes_received", now.received - last.received)
            count("changes_applied", now.applied - last.applied)
            for (entity, traffic) in now.entities {
                let before = last.entities[entity] ?? SyncMeasures.Traffic()
                count(
                    "entity_bytes", traffic.bytesSent - before.bytesSent, [("entity", entity), ("direction", "sent")])
                count(
                    "entity_bytes", traffic.bytesReceived - before.bytesReceived,
                    [("entity", entity), ("direction", "received")])
            }
            for (stage, failures) in now.failures {
                count("failures", failures - (last.failures[stage] ?? 0), [("stage", stage.rawValue)])
            }
            let scopes = now.firstData.scopes - last.firstData.scopes
            guard scopes > 0 else { return }
            Timer(label: Self.prefix + "first_data", dimensions: [], factory: factory)
                .recordMilliseconds((now.firstData.total - last.firstData.total) / (.milliseconds(1) * scopes))
        }

        private static let prefix = "tidemark_device_"

        private func gauge(_ name: String, _ value: Double) {
            Gauge(label: Self.prefix + name, dimensions: [], factory: factory).record(value)
        }

        /// A file that was put back has smaller sums: that is no negative traffic.
        private func count(_ name: String, _ number: Int, _ dimensions: [(String, String)] = []) {
            guard number > 0 else { return }
            Counter(label: Self.prefix + name, dimensions: dimensions, factory: factory).increment(by: number)
        }
    }
#endif
