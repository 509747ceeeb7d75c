import GRDB
import Tidemark
import TidemarkServer

/// What of a world decides which steps make sense in it.
struct Outlook: Sendable {
    struct Letter: Sendable {
        var device: Int
        var isAnswer: Bool
    }

    /// The messages under way, in their order.
    var letters: [Letter] = []
    /// The devices whose apps run, each with the acts that change something there.
    var acts: [Int: [String]] = [:]
    /// How long until somebody wakes up; `nil` where nobody does.
    var wait: Int64?
    /// Whether the server holds rows that it may let go.
    var hasOldRows = false
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Outlook {
    /// - Parameter hasEdits: whether acts are tried out: what they write is undone.
    init(_ world: World, hasEdits: Bool) throws {
        letters = world.messages.map { Letter(device: $0.device, isAnswer: $0.response != nil) }
        for device in world.devices {
            guard let process = device.process, process.isAlive else { continue }
            acts[device.number] = []
            guard hasEdits else { continue }
            try Dependencies.$current.withValue(process) {
                acts[device.number] = try device.file.queue.writeWithoutTransaction { db in
                    try world.app.acts.filter { try $0.changes(db) }.map(\.name)
                }
            }
        }
        wait = world.timers.next.map { max(0, $0 - world.time) }
        hasOldRows = try world.app.parts.contains { scope in
            try world.server.store.log(of: scope, after: 0).contains { $0.supersededBy != nil || $0.kind != .upsert }
        }
    }
}

extension SimulatedApp.Act {
    /// Whether it would change anything now.
    fileprivate func changes(_ db: Database) throws -> Bool {
        let before = db.totalChangesCount
        var choices = Choices(seed: 0, serial: 0, device: 0)
        do {
            try db.inTransaction(.immediate) {
                try perform(db, &choices)
                return .rollback
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {}
        return db.totalChangesCount != before
    }
}
