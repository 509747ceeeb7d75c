import GRDB

extension SyncEngine {
    /// The list of ``rejectedOperations()`` as it changes, beginning with the present one. Each call starts a stream of
    /// its own; a slow reader misses the middle, never the latest. It does not end with ``disconnect()``: cancel the
    /// task that reads it.
    public nonisolated var rejectedUpdates: AsyncStream<[RejectedOperation]> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            Task {
                await self.rejectedBoard.add(continuation)
                await self.publishStatus()
            }
        }
    }

    /// The list of ``conflicts()`` as it changes, beginning with the present one, in the same way.
    public nonisolated var conflictUpdates: AsyncStream<[Conflict]> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            Task {
                await self.conflictBoard.add(continuation)
                await self.publishStatus()
            }
        }
    }

    /// Reads the lists that are followed; a part of ``publishStatus()``. A file that cannot be read now is read again
    /// at the next change.
    func publishLists() async {
        if await rejectedBoard.isWatched, let list = try? await rejectedOperations() {
            await rejectedBoard.publish(list)
        }
        if await conflictBoard.isWatched, let list = try? await conflicts() { await conflictBoard.publish(list) }
    }
}
