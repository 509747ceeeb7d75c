public import TidemarkServer

// What concerns the store as a whole, not one scope.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension MemoryStore {
    /// Removes superseded rows, those first that were superseded first.
    public func sweep(supersededBefore moment: Int64, limit: Int) -> Int {
        change { $0.sweep(supersededBefore: moment, limit: limit) }
    }

    /// The names in the order of their bytes.
    public func scopes(after scope: Scope?, limit: Int) -> [Scope] {
        let names = scopes()
        let start = scope.map { last in names.partitionPoint { $0 <= last } } ?? 0
        return Array(names[start...].prefix(max(0, limit)))
    }

    /// The time that was kept last, in milliseconds since 1970.
    public func ageClock() -> Int64? { look(\.ageClock) }

    /// Keeps a time, in milliseconds since 1970.
    public func setAgeClock(_ moment: Int64) { change { $0.ageClock = moment } }

    /// The bounded list, newest first.
    public func rejections(in scope: Scope?, id: Int64?, limit: Int) -> [StoredRejection] {
        look { log in
            let all = log.rejections.reversed().lazy.filter { entry in
                (scope == nil || entry.scope == scope) && (id == nil || entry.id == id)
            }
            return Array(all.prefix(max(0, limit)))
        }
    }

    /// Removes one entry of the bounded list.
    public func discardRejection(_ id: Int64) -> Bool {
        change { log in
            guard let index = log.rejections.firstIndex(where: { $0.id == id }) else { return false }
            log.rejections.remove(at: index)
            return true
        }
    }
}
