#if Server
    #if canImport(Glibc)
        import Dispatch
        import Foundation
        import Glibc
    #endif

    /// Tells at once that a program may have written to an SQLite file, by inotify(7). It opens neither the file nor
    /// its log: closing one would end the locks that SQLite holds on it in this process
    /// (sqlite.org/howtocorrupt.html, 2.2).
    ///
    /// A watch is a hint, no more: file systems of other machines tell nothing. A caller who must miss no write also
    /// reads the file now and then.
    struct FileWatch {
        /// The least time between two looks: a writer of many transactions, as the engine itself is one, causes no look
        /// for each.
        static let pause = Duration.milliseconds(10)

        /// When to look, in milliseconds after something was written: the log's last page is there before the
        /// transaction is, and a disk that syncs it lies between.
        private static let delays = [2, 10, 40, 100]

        /// Yields when it is time to look. The stream ends with the task that reads it.
        let looks: AsyncStream<Void>

        #if canImport(Glibc)
            /// The events of one reading, at most; more come with the next.
            private static let bufferSize = 16_384

            /// `nil` where the system has no watch left, or none at all.
            init?(_ path: String) {
                let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
                guard descriptor >= 0 else { return nil }
                // The folder, since the log comes and goes.
                let file = URL(filePath: path).resolvingSymlinksInPath()
                let mask = UInt32(IN_MODIFY | IN_CREATE | IN_MOVED_TO)
                guard inotify_add_watch(descriptor, file.deletingLastPathComponent().path, mask) >= 0 else {
                    close(descriptor)
                    return nil
                }
                let names = Set([file.lastPathComponent, file.lastPathComponent + "-wal"].map { Array($0.utf8) })
                let (looks, teller) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
                let queue = DispatchQueue(label: "tidemark.watch")
                // Unsafe, because its type does not say that a dispatch source may be cancelled from any thread.
                nonisolated(unsafe) let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
                source.setEventHandler {
                    // Later events are read together, also where a neighbour of the file is always written.
                    source.suspend()
                    queue.asyncAfter(deadline: .now() + .milliseconds(Self.delays[0])) { source.resume() }
                    guard Self.read(descriptor).contains(where: { $0.isEmpty || names.contains($0) }) else { return }
                    for delay in Self.delays {
                        queue.asyncAfter(deadline: .now() + .milliseconds(delay)) { teller.yield() }
                    }
                }
                source.setCancelHandler { close(descriptor) }
                source.resume()
                teller.onTermination = { _ in source.cancel() }
                self.looks = looks
            }

            /// The names of the files that events were about; an empty one where events were lost.
            private static func read(_ descriptor: Int32) -> [[UInt8]] {
                var names: [[UInt8]] = []
                withUnsafeTemporaryAllocation(byteCount: bufferSize, alignment: 8) { buffer in
                    let count = Glibc.read(descriptor, buffer.baseAddress, bufferSize)
                    let header = MemoryLayout<inotify_event>.size
                    var start = 0
                    while start + header <= count {
                        let event = buffer.loadUnaligned(fromByteOffset: start, as: inotify_event.self)
                        let end = min(start + header + Int(event.len), count)
                        names.append(Array(buffer[(start + header)..<end].prefix { $0 != 0 }))
                        start = end
                    }
                }
                return names
            }
        #else
            init?(_: String) { return nil }
        #endif
    }
#endif
