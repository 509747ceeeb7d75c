public import Observation

/// An engine's status and progress as properties that a SwiftUI view can show, and anything else that follows the
/// `Observation` framework.
///
/// ```swift
/// struct SyncBar: View {
///     @State private var shown = ObservableStatus()
///     let sync: SyncEngine
///
///     var body: some View {
///         Text(shown.status.description).task { await shown.follow(sync) }
///     }
/// }
/// ```
@MainActor @Observable public final class ObservableStatus {
    /// The status as last heard; that of an engine at rest until then.
    public private(set) var status: SyncStatus
    /// The progress as last heard, with totals where they are known.
    public private(set) var progress: SyncProgress

    /// Makes one that follows nothing yet; with arguments for previews and tests.
    public init(status: SyncStatus = SyncStatus(), progress: SyncProgress = SyncProgress()) {
        self.status = status
        self.progress = progress
    }

    /// From 0 to 1 while rows or edits with a known total are on their way; `nil` where there is nothing to show a bar
    /// for. Rows that come are shown before edits that go.
    public var fraction: Double? {
        [progress.received, progress.sent].lazy.compactMap(\.fraction).first { $0 < 1 }
    }

    /// Keeps the properties up to date until the task is cancelled. An engine that is let go of by `disconnect()` says
    /// no more; it does not end.
    public func follow(_ engine: SyncEngine) async {
        await withDiscardingTaskGroup { group in
            group.addTask { for await status in engine.statusUpdates { await self.set(status) } }
            group.addTask { for await progress in engine.progressUpdates { await self.set(progress) } }
        }
    }

    private func set(_ status: SyncStatus) { self.status = status }
    private func set(_ progress: SyncProgress) { self.progress = progress }
}
