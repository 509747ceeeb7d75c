#if Server
    import NIOConcurrencyHelpers
    import NIOCore

    /// The open connections of one server: whoever is idle makes room for those who come.
    final class OpenConnections: Sendable {
        private struct Entry {
            let channel: any Channel
            /// Since when nothing was asked of it that is not answered.
            var idleSince: NIODeadline?

            var idleOrder: NIODeadline { idleSince ?? .distantFuture }
        }

        private struct State {
            var entries: [ObjectIdentifier: Entry] = [:]

            /// Takes it off the list, before it has come to its end: nobody picks it twice.
            mutating func remove(_ id: ObjectIdentifier) -> (any Channel)? {
                entries.removeValue(forKey: id)?.channel
            }
        }

        private let most: Int
        private let state = NIOLockedValueBox(State())

        init(_ limits: ServerLimits) {
            most = limits.connections
        }

        /// A connection was made. Where there are too many, the one that has been idle for longest goes.
        func opened(_ channel: any Channel) {
            let id = ObjectIdentifier(channel)
            let victim = state.withLockedValue { state -> (any Channel)? in
                let isFull = state.entries.count >= most
                let idlest = isFull ? state.entries.min { $0.value.idleOrder < $1.value.idleOrder } : nil
                state.entries[id] = Entry(channel: channel, idleSince: .now())
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

        /// All that was asked is answered. One that is over the limit goes now.
        func isIdle(_ channel: any Channel) {
            let id = ObjectIdentifier(channel)
            let victim = state.withLockedValue { state -> (any Channel)? in
                state.entries[id]?.idleSince = .now()
                return state.entries.count > most ? state.remove(id) : nil
            }
            victim?.close(promise: nil)
        }
    }
#endif
