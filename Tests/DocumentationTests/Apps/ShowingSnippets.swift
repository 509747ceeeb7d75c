import Foundation
import GRDB
import Testing
import Tidemark
import TidemarkServer
import TidemarkTesting
import TidemarkWire

/// The code of the page about what an app shows, compiled as it stands there, and run.
@Suite("The guide is right about badges, lists and numbers", .timeLimit(.minutes(10)))
struct ShowingSnippetTests {
    struct Todo: Codable, Equatable, FetchableRecord, PersistableRecord {
        var id: String
        var title: String
    }

    // snippet: rows-with-state
    struct TodoRow: FetchableRecord {
        var todo: Todo
        var state: RecordState

        init(row: Row) throws {
            todo = try Todo(row: row)
            state = try RecordState(row: row)
        }

        static let all: SQLRequest<TodoRow> = """
            SELECT * FROM todo LEFT JOIN tidemark_state_todo USING (id) ORDER BY title
            """
    }
    // end snippet

    private static func observe(
        sync: SyncEngine, database: DatabasePool, show: ([TodoRow]) -> Void
    ) async throws {
        // snippet: rows-observed
        try await sync.install()  // makes the view, where no engine has been on this file yet
        let observation = ValueObservation.tracking { db in try TodoRow.all.fetchAll(db) }
        for try await rows in observation.values(in: database) { show(rows) }
        // end snippet
    }

    private static func conflicts(
        database: DatabasePool, ask: (Conflict, Value?, Value?) -> Void
    ) async throws {
        // snippet: conflict-list
        let observation = ValueObservation.tracking(Conflict.fetchAll)
        for try await conflicts in observation.values(in: database) {
            for conflict in conflicts where conflict.isOpen {
                if let title = conflict["title"] { ask(conflict, title.mine, title.theirs) }
            }
        }
        // end snippet
    }

    private static func tell(sync: SyncEngine) async throws {
        // snippet: measures
        let measures = try await sync.measures()
        for (entity, traffic) in measures.entities { print(entity, traffic.bytesSent, traffic.bytesReceived) }
        if let density = measures.density { print("\(density) changes came for each that made a difference") }
        for (scope, status) in try await sync.status().scopes { print(scope, status.lag ?? 0, status.age() ?? .zero) }
        // end snippet
    }

    @Test("a list shows each row with its state, a conflict comes to be asked about, and numbers are told")
    func shown() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tidemark-showing-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let server = SyncServer(store: MemoryStore(), entities: [.state("todo", conflict: .manual)])
        func device(_ name: String) throws -> (DatabasePool, SyncEngine) {
            let database = try DatabasePool(path: folder.appending(path: name).path)
            try database.write { db in try db.execute(sql: "CREATE TABLE todo (id TEXT PRIMARY KEY, title TEXT)") }
            let engine = try SyncEngine(
                for: database, tables: [.table(Todo.self)], scopes: ["w:1"],
                transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
            return (database, engine)
        }
        let (here, sync) = try device("here")
        let (there, other) = try device("there")
        try await here.write { db in try Todo(id: "t1", title: "Milk").insert(db) }
        try await sync.syncNow()
        try await other.syncNow()
        try await here.write { db in
            try Todo(id: "t1", title: "Oat milk").update(db)
            try Todo(id: "t2", title: "Rye").insert(db)
        }
        let shown = Task {
            try await Self.observe(sync: sync, database: here) { rows in
                if rows.map(\.state) == [.undecided, .confirmed] { withUnsafeCurrentTask { $0?.cancel() } }
            }
        }
        let asked = Task {
            try await Self.conflicts(database: here) { conflict, mine, theirs in
                #expect(mine == .text("Oat milk") && theirs == .text("Butter"))
                withUnsafeCurrentTask { $0?.cancel() }
            }
        }
        try await there.write { db in try Todo(id: "t1", title: "Butter").update(db) }
        try await other.syncNow()
        try await sync.syncNow()
        _ = await shown.result
        _ = await asked.result
        try await Self.tell(sync: sync)
        #expect(try await sync.measures().entities["todo"]?.sent == 3)
    }
}
