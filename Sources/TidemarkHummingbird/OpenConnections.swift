#if Server
    import NIOConcurrencyHelpers
    import NIOCore

    /// The open connections of one server: whoever is idle makes room for those who come, and answers that nobody
    /// fetches do not fill the memory.
    final class OpenConnections: Sendable {
        private struct Entry {
            let channel: any Channel
            /// Since when nothing was asked of it that is not answered.
            var idleSince: NIODeadline?
            /// Bytes that are held for its reader.
            var unsent = 0
            /// Since when there are any, or some were taken last.
            var unsentSince: NIODeadline

            var idleOrder: NIODeadline { idleSince ?? .distantFuture }
        }

        private struct State {
            var entries: [ObjectIdentifier: Entry] = [:]
            var unsent = 0

            /// Takes it off the list, before it has come to its end: nobody picks it twice.
            mutating func remove(_ id: ObjectIdentifier) -> (any Channel)? {
                guard let entry = entries.removeValue(forKey: id) else { return nil }
                unsent -= entry.unsent
                return entry.channel
            }
        }

        private let most: Int
        private let mostUnsent: Int
        private let state = NIOLockedValueBox(State())

        init(_ limits: ServerLimits) {
            most = limits.connections
            mostUnsent = limits.unsentBytes
        }

        /// A connection was made. Where there are too many, the one that has been idle for longest goes.
        func opened(_ channel: any Channel) {
            let (id, now) = (ObjectIdentifier(channel), channel.eventLoop.now)
            let victim = state.withLockedValue { state -> (any Channel)? in
                let isFull = state.entries.count >= most
                let idlest = isFull ? state.entries.min { $0.value.idleOrder < $1.value.idleOrder } : nil
                state.entries[id] = Entry(channel: channel, idleSince: now, unsentSince: now)
                guard let idlest, idlest.value.idleSince != nil else { return nil }
                return state.remove(idlest.key)
            }
            victim?.close(promise: nil)
        }

        func closed(_ channel: any Channel) {
            state.withLockedValue { _ = $0.remove(ObjectIdentifier(channel)) }
        }

        func isBusy(_ channel: any Channel) {
            state.withLockedValue { $0.entries[ObjectIdentifier(channel)]?.idleSince = nil }
        }

        /// Notes that all requests of a connection are answered. A connection over the limit is closed now.
        func isIdle(_ channel: any Channel) {
            let (id, now) = (ObjectIdentifier(channel), channel.eventLoop.now)
            let victim = state.withLockedValue { state -> (any Channel)? in
                state.entries[id]?.idleSince = now
                return state.entries.count > most ? state.remove(id) : nil
            }
            victim?.close(promise: nil)
        }

        /// Notes how many bytes are held for the connection's reader. Where all readers together leave too many, the
        /// readers that have taken nothing for longest go, but never the only one.
        func note(unsent bytes: Int, of channel: any Channel, tookSome: Bool) {
            let (id, now) = (ObjectIdentifier(channel), channel.eventLoop.now)
            let victims = state.withLockedValue { state -> [any Channel] in
                guard var entry = state.entries[id] else { return [] }
                state.unsent += bytes - entry.unsent
                if tookSome || entry.unsent == 0 { entry.unsentSince = now }
                entry.unsent = bytes
                state.entries[id] = entry
                guard state.unsent > mostUnsent else { return [] }
                var waiting = state.entries.filter { $0.value.unsent > 0 }
                    .sorted { $0.value.unsentSince > $1.value.unsentSince }
                var victims: [any Channel] = []
                while state.unsent > mostUnsent, waiting.count > 1, let slowest = waiting.popLast() {
                    if let victim = state.remove(slowest.key) { victims.append(victim) }
                }
                return victims
            }
            for victim in victims { victim.close(promise: nil) }
        }
    }
#endif
