import Testing

/// The rooms of the client and of the server, from the lowest to the highest: a file names types of its own room and of
/// those below it only.
struct FloorRule {
    let target: String
    let rooms: [String]

    static let client = FloorRule(
        target: "Sources/Tidemark/",
        rooms: [
            "Runtime", "Reports", "SQL", "Schema", "File", "Store", "Manifest", "Capture", "Transport", "Identity",
            "Push", "Apply", "Scopes", "Snapshot", "Status", "Exchange", "Verify", "Attachments", "Engine",
        ])
    static let server = FloorRule(
        target: "Sources/TidemarkServer/",
        rooms: [
            "Rules", "Store", "Turns", "Identity", "Access", "Limits", "Nudges", "Hooks", "Rows", "Engine", "Records",
            "Devices", "Retention", "Commit", "Tables", "Blobs", "Push", "Pull", "Snapshot", "Digest", "Rejections",
            "Erasure", "Exchange", "Dialects",
        ])
    static let houses = [client, server]

    /// The room of a file; `nil` where it lies in none.
    func room(of path: String) -> Int? {
        guard path.hasPrefix(target), path.hasSuffix(".swift") else { return nil }
        return rooms.firstIndex(of: String(path.dropFirst(target.count).prefix { $0 != "/" }))
    }

    func faults(files: [Repository.File]) -> [Fault] {
        let names = TypeNames(files: files, in: target)
        let strangers = names.paths.filter { room(of: $0) == nil }
            .map { Fault(path: $0, line: 1, message: "lies in none of the rooms of \(target)") }
        return strangers
            + names.uses.compactMap { use in
                guard let own = room(of: use.path), let other = room(of: use.home), other > own else { return nil }
                return Fault(
                    path: use.path, line: use.line, message: "'\(use.name)' lies above, in \(rooms[other])")
            }
    }
}

@Suite("Rooms of the client and of the server")
struct FloorRuleTests {
    @Test("A file names types of its own room and of those below", arguments: FloorRule.houses)
    func floors(house: FloorRule) { expectNone(house.faults(files: Repository.files)) }

    @Test("Each room has files", arguments: FloorRule.houses)
    func rooms(house: FloorRule) {
        let used = Set(Repository.files.compactMap { house.room(of: $0.path) })
        #expect(used == Set(house.rooms.indices))
    }

    @Test("A type that lies above is found, also in an extension of it; a nested one of the same name is no such")
    func planted() {
        func faults(_ text: String) -> [Int] {
            let files = [
                Repository.File(path: "Sources/Tidemark/Engine/SyncEngine.swift", text: "final class SyncEngine {}\n"),
                Repository.File(path: "Sources/Tidemark/Engine/B.swift", text: "public import struct Wire.Scope\n"),
                Repository.File(path: "Sources/Tidemark/Store/A.swift", text: text),
            ]
            return FloorRule.client.faults(files: files).map(\.line)
        }
        #expect(faults("struct A {\n    let engine: SyncEngine\n}\n") == [2])
        #expect(faults("struct A {}\nextension SyncEngine {}\n") == [2])
        #expect(faults("import Wire\nstruct A {}\n").isEmpty)
        #expect(faults("struct A { enum SyncEngine {} }\nlet a: A.SyncEngine // SyncEngine\n").isEmpty)
    }

    @Test("A file in no room is found")
    func loose() {
        let files = ["Sources/Tidemark/A.swift", "Sources/Tidemark/Attic/A.swift"].map {
            Repository.File(path: $0, text: "")
        }
        #expect(FloorRule.client.faults(files: files).count == 2)
    }
}
