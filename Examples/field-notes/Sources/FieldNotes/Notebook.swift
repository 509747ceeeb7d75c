import Foundation
import GRDB
import Tidemark

/// The app behind its screens: one file, one engine that runs as long as the app does, and what a user may do with
/// notes. Nothing of it waits for the network.
@MainActor final class Notebook {
    let database: DatabasePool
    let sync: SyncEngine
    private let network: Network
    private let running: Task<Void, any Error>

    init(path: String, scope: Scope, transport: any Transport) throws {
        database = try DatabasePool(path: path)
        try Note.migrator.migrate(database)
        let network = Network(transport)
        let sync = try SyncEngine(
            for: database, tables: [.table(Note.self, conflicts: .manual)], scopes: [scope], transport: network)
        (self.network, self.sync) = (network, sync)
        running = Task { try await sync.run() }
    }

    func close() async {
        running.cancel()
        _ = await running.result
    }

    func signOut() async { await sync.disconnect() }

    func goOffline() async { await network.switchOff() }

    func goOnline() async {
        await network.switchOn()
        // A wait that began without a network is over.
        await sync.wake()
    }

    func add(_ title: String) async throws {
        let note = Note(id: UUID.v7().uuidString.lowercased(), title: title)
        try await database.write { db in try note.insert(db) }
    }

    func edit(_ note: Note, title: String) async throws {
        var note = note
        note.title = title
        try await database.write { [note] db in try note.update(db) }
    }

    func delete(_ note: Note) async throws { _ = try await database.write { db in try note.delete(db) } }
}

/// The network as somebody in the field has it: now and then.
actor Network: Transport {
    private let transport: any Transport
    private var isOn = true

    init(_ transport: any Transport) { self.transport = transport }

    func switchOn() { isOn = true }
    func switchOff() { isOn = false }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        guard isOn else { throw URLError(.notConnectedToInternet) }
        return try await transport.send(request)
    }
}
