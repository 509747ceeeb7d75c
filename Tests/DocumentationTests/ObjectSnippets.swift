import Foundation
import TidemarkObjects

private struct Conference: Decodable {
    var id: String
    var name: String
}

/// The code of Documentation/Objects.md; `SnippetTests` compares the two.
private func objects(path: String, serverURL: URL, session: Session) async throws {
    // snippet: objects
    let store = try ObjectStore(
        storage: .persistent(path: path),  // or .inMemory
        transport: HTTPTransport(serverURL) { try await session.accessToken() })
    store.deltaSyncStrategy = .objectBased  // or .collectionBased, or .none

    let conferences = try await store.fetch("conference")
    let inHamburg = try await store.fetch("conference", where: [ObjectFilter("place", "Hamburg")])
    let conference = try await store.object("conference", id: "conf9")
    // end snippet

    // snippet: objects-read
    for object in conferences {
        print(object.id, object.lastModifiedAt, object["name"] ?? .null)
        let conference: Conference = try object.decode()
        print(conference.name)
    }
    // end snippet

    // snippet: objects-then
    if let kept = try await store.cached("conference") { show(kept) }
    show(try await store.fetch("conference"))
    // end snippet
    _ = (inHamburg, conference)
}

private struct Session: Sendable {
    func accessToken() async throws -> String { "" }
}

private func show(_: [StoredObject]) {}
