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

private func stamped(path: String, serverURL: URL, session: Session) async throws {
    // snippet: stamped
    let words = try StampedStore(
        storage: .persistent(path: path),
        transport: HTTPTransport(serverURL) { try await session.accessToken() })

    try await words.set(["meaning": "the sea, twice a day"], of: "word", id: "tide")
    try await words.delete("word", id: "ebb")
    try await words.sync()

    for word in try await words.items(of: "word") { print(word.id, word.fields["meaning"] ?? .null) }
    for refusal in try await words.refusals() { print(refusal.id, refusal.code, refusal.detail) }
    // end snippet
}

private struct Session: Sendable {
    func accessToken() async throws -> String { "" }
}

private func show(_: [StoredObject]) {}
