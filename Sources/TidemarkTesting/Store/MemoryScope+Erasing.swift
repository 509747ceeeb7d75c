import TidemarkServer

extension MemoryScope {
    func countKept(by principal: String?) throws -> Erasure { erasing(principal, limit: .max).gone }

    func markErased(at moment: Int64) throws {
        let place = create(at: moment)
        let scope = log.scopes[place]
        guard scope.state.erasedAt == nil else { return }
        let digests = digests
        undo {
            $0.log.scopes[place] = scope
            $0.digests = digests
        }
        log.scopes[place].state = .erased(at: moment, head: scope.state.head + 1)
        log.scopes[place].digests = [:]
        self.digests = .init()
    }

    func erase(of principal: String?, limit: Int) throws -> Erasure {
        let former = log
        undo { $0.log = former }
        let (gone, left) = erasing(principal, limit: limit)
        log = left
        return gone
    }

    /// What goes, and what is left then.
    private func erasing(_ principal: String?, limit: Int) -> (gone: Erasure, left: MemoryLog) {
        var (gone, left, rest) = (Erasure(), log, limit)
        /// Counts one that is to go, as long as there may be one more.
        func takes(_ name: String?, _ count: WritableKeyPath<Erasure, Int>) -> Bool {
            guard rest > 0, principal == nil || principal.map({ Array($0.utf8) }) == name.map({ Array($0.utf8) }) else {
                return false
            }
            rest -= 1
            gone[keyPath: count] += 1
            return true
        }
        if let place {
            var scope = left.scopes[place]
            let rows = Set(scope.rows.all.prefix { _ in takes(nil, \.changes) }.map(\.version))
            scope.rows.removeAll { rows.contains($0.version) }
            for (name, lane) in scope.lanes {
                for number in lane.verdicts.keys where takes(name.principal, \.verdicts) {
                    scope.lanes[name]?.verdicts[number] = nil
                }
            }
            scope.lanes = scope.lanes.filter { !($0.value.verdicts.isEmpty && takes($0.key.principal, \.lanes)) }
            scope.devices = scope.devices.filter { !takes($0.key.principal, \.devices) }
            scope.deletes = scope.deletes.filter {
                !takes($0.key.first.map { String(decoding: $0, as: UTF8.self) }, \.tallies)
            }
            left.scopes[place] = scope
        }
        left.aliases = left.aliases.filter { $0.value.scope != self.name || !takes($0.key.principal, \.assignedIDs) }
        left.rejections.removeAll { $0.scope == self.name && takes($0.lane.principal, \.rejections) }
        return (gone, left)
    }
}
