import TidemarkServer

extension MemoryScope {
    func id(for name: TemporaryName) throws -> RecordID? { log.aliases[name]?.record }

    func assignment(of record: RecordID, entity: String) throws -> AssignmentPlace? {
        var place: AssignmentPlace?
        for (name, alias) in log.aliases where name.entity == entity && alias.record == record {
            if alias.scope == self.name { return .here }
            place = .elsewhere
        }
        return place
    }

    func store(_ id: RecordID, for name: TemporaryName, at moment: Int64) throws {
        _ = create(at: moment)
        guard log.aliases[name] == nil else { throw AlreadyStored(description: "\(name.id) stands for something.") }
        undo { $0.log.aliases[name] = nil }
        log.aliases[name] = MemoryLog.Alias(record: id, scope: self.name, made: moment)
    }

    func keep(_ rejection: StoredRejection, limit: Int) throws {
        var kept = rejection
        kept.id = log.lastRejection + 1
        log.lastRejection = kept.id
        log.rejections.append(kept)
        let former = log.rejections
        let own = former.indices.filter { former[$0].scope == kept.scope }
        for index in own.dropLast(limit).reversed() { log.rejections.remove(at: index) }
        undo {
            $0.log.rejections = former.dropLast()
            $0.log.lastRejection -= 1
        }
    }
}
