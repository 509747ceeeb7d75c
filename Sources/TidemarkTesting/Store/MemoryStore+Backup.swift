package import TidemarkServer

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension MemoryStore {
    /// A store as it was at one moment. It shares its memory with the store until that is written to.
    public struct Backup: Sendable {
        let tokenKey: [UInt8]
        let log: MemoryLog
    }

    /// Takes a backup; what is written from now on is not in it.
    public func backup() -> Backup { look { Backup(tokenKey: tokenKey, log: $0) } }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension MemoryStore {
    /// The rows of a scope above a version that are kept, superseded ones too, in version order.
    package func log(of scope: Scope, after version: Version) -> [LogEntry] {
        look { log in
            guard let index = log.places[scope] else { return [] }
            let rows = log.scopes[index].rows
            return rows.all[rows.start(after: version)...].map { row in
                LogEntry(
                    version: row.version, entity: String(decoding: row.key.entity, as: UTF8.self),
                    record: String(decoding: row.key.record, as: UTF8.self), kind: row.kind, payload: row.payload,
                    time: row.time, supersededBy: row.supersededBy)
            }
        }
    }

    /// What is known of a scope apart from its rows; all zero for one that nobody wrote to.
    package func state(of scope: Scope) -> ScopeState {
        look { log in log.places[scope].map { log.scopes[$0].state } ?? ScopeState() }
    }

    /// All scopes that were written to, in the order of their bytes.
    package func scopes() -> [Scope] { look { log in log.scopes.map(\.name).sorted() } }
}
