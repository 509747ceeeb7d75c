import GRDB
import TidemarkCore

extension SyncEngine {
    /// The progress of syncing as it changes, beginning with the present one: behind every answer that was taken in.
    /// Each call starts a stream of its own; a slow reader misses the middle, never the latest.
    ///
    /// ```swift
    /// for await progress in sync.progressUpdates {
    ///     bar.fraction = progress.received.fraction ?? progress.sent.fraction
    /// }
    /// ```
    /// While no stream is read, nothing is counted. It does not end with ``disconnect()``: cancel the task that reads
    /// it.
    public nonisolated var progressUpdates: AsyncStream<SyncProgress> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            Task {
                await self.progressBoard.add(continuation)
                await self.publishStatus()
            }
        }
    }

    /// Counts and publishes, where the progress is followed; a part of ``publishStatus()``.
    func publishProgress() async {
        guard await progressBoard.isWatched else { return }
        var counts = SyncReport.Counts()
        var isBusy = false
        for driver in drivers {
            counts += await driver.counts
            isBusy = await driver.machine.isBusy || isBusy
        }
        let (now, scopes) = (Dependencies.current.uptime, followed)
        let isDue = meter.isDue(counts, now: now, isBusy: isBusy)
        let found = try? await file.read { db in
            (isDue ? try ProgressMeter.count(db) : nil, try ProgressMeter.fillings(db, scopes))
        }
        // A file that cannot be read now is read again behind the next answer.
        guard let (unsent, fillings) = found else { return }
        // Another process may be the one that fills.
        isBusy = isBusy || isWaiting && lease?.isHolderAble == true && !fillings.isEmpty
        if let unsent { meter.counted(unsent, answered: counts.pushed, now: now) }
        await progressBoard.publish(meter.progress(counts, fillings, isBusy: isBusy))
    }
}
