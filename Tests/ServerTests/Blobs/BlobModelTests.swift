import Testing
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

/// Random uploads, finished, given up and begun anew, against what a dictionary would hold (A12).
@Suite("Stores of blobs and a model of one")
struct BlobModelTests {
    private static let piece = BlobPart.pieceBytes
    private static let room = BlobRoom(scope: 64 << 20, caller: 64 << 20, parts: 99)
    private static let names = (["s", "t"] as [Scope]).flatMap { scope in
        ["ada", "bob"].flatMap { principal in
            (["a", "b"] as [Character]).map {
                BlobPartName(scope: scope, principal: principal, hash: String(repeating: $0, count: 64))
            }
        }
    }

    /// What the store has to hold.
    private struct Model {
        struct Key: Hashable {
            var scope: Scope
            var hash: String
        }

        var blobs: [Key: [UInt8]] = [:]
        var parts: [BlobPartName: (part: BlobPart, bytes: [UInt8])] = [:]
        /// Parts as somebody knew them once.
        var former: [BlobPart] = []

        func isPresent(_ part: BlobPart) -> Bool { parts[part.name]?.part == part }

        func tally(_ scope: Scope) -> BlobTally {
            let (blobs, parts) = (blobs.filter { $0.key.scope == scope }, parts.filter { $0.key.scope == scope })
            let bytes = blobs.reduce(0) { $0 + $1.value.count } + parts.reduce(0) { $0 + Int($1.value.part.size) }
            return BlobTally(blobs: blobs.count, parts: parts.count, bytes: Int64(bytes))
        }
    }

    @Test(
        "A store of blobs holds what a model of one holds, through random calls and openings",
        arguments: [StoreKind.sqlite, .memory, .postgres], 1...3)
    func holds(kind: StoreKind, seed: UInt64) async throws {
        let bench = try StoreBench(kind)
        var random = SplitMix64(seed: seed)
        var model = Model()
        for step in 1...150 {
            try await act(bench, &model, &random, at: Int64(step))
            if Int.random(in: 0..<40, using: &random) == 0 { try bench.reopen() }
            try await compare(bench, model)
        }
        #expect(!model.blobs.isEmpty)
    }

    private func act(
        _ bench: StoreBench, _ model: inout Model, _ random: inout SplitMix64, at moment: Int64
    ) async throws {
        let store = try #require(bench.store as? any BlobStore)
        let name = try #require(Self.names.randomElement(using: &random))
        // One that is known is mostly the present one.
        let isStale = Int.random(in: 0..<5, using: &random) == 0
        let known = isStale ? model.former.randomElement(using: &random) : model.parts[name]?.part
        switch Int.random(in: 0..<11, using: &random) {
        case 0, 1:
            let size = try #require(
                [0, 1, 5000, Self.piece, Self.piece + 7, 2 * Self.piece].randomElement(using: &random))
            let part = try await store.begin(name, size: Int64(size), within: Self.room, at: moment)
            if let former = model.parts[name]?.part { model.former.append(former) }
            model.parts[name] = (part, [])
        case 2...6:
            guard let known, !known.isComplete else { return }
            let count = Bool.random(using: &random) ? known.room : Int.random(in: 1...known.room, using: &random)
            let bytes = [UInt8](repeating: UInt8.random(in: 0...255, using: &random), count: count)
            let grown = try? await store.append(bytes, to: known, isLast: true, at: moment)
            #expect((grown != nil) == model.isPresent(known))
            guard let grown else { return }
            model.former.append(known)
            model.parts[known.name]?.part = grown
            model.parts[known.name]?.bytes += bytes
        case 7, 8:
            guard let known else { return }
            let isNew = try? await store.finish(known, at: moment)
            // Whoever knows its place may finish it.
            let present = model.parts[known.name]?.part
            #expect((isNew != nil) == (present?.place == known.place && present?.isComplete == true))
            guard let isNew, let bytes = model.parts.removeValue(forKey: known.name)?.bytes else { return }
            let key = Model.Key(scope: known.name.scope, hash: known.name.hash)
            #expect(isNew == (model.blobs[key] == nil))
            if isNew { model.blobs[key] = bytes }
            model.former.append(known)
        case 9:
            let key = Model.Key(scope: name.scope, hash: name.hash)
            // A hash has the same bytes whenever it comes.
            let count = try #require([0, 1, 5000, Self.piece].randomElement(using: &random))
            let bytes = model.blobs[key] ?? [UInt8](repeating: UInt8.random(in: 0...255, using: &random), count: count)
            let isNew = try await store.keep(bytes, as: name, within: Self.room, at: moment)
            #expect(isNew == (model.blobs[key] == nil))
            model.blobs[key] = bytes
            if let former = model.parts.removeValue(forKey: name)?.part { model.former.append(former) }
        default:
            if let known {
                try await store.drop(known)
                if model.parts[known.name]?.part.place == known.place { model.parts[known.name] = nil }
                model.former.append(known)
            } else if let blob = try await store.blob(name.hash, in: name.scope) {
                #expect(try await store.remove(blob, in: name.scope, seenBefore: .max))
                model.blobs[Model.Key(scope: name.scope, hash: name.hash)] = nil
                try await store.tidyBlobs(of: name.scope)
            }
        }
    }

    private func compare(_ bench: StoreBench, _ model: Model) async throws {
        let store = try #require(bench.store as? any BlobStore)
        for name in Self.names {
            let (part, held) = (try await store.part(name), model.parts[name])
            #expect(part == held?.part)
            if let part, part.kept > 0 {
                let some = try await store.bytes(of: part, from: part.kept - 1, limit: 9)
                #expect(some == held?.bytes.suffix(1).map { $0 })
            }
            let bytes = model.blobs[Model.Key(scope: name.scope, hash: name.hash)]
            let blob = try await store.blob(name.hash, in: name.scope)
            #expect(blob?.size == bytes.map { Int64($0.count) })
            if let blob, blob.size > 0 {
                #expect(
                    try await store.bytes(of: blob, in: name.scope, from: 0, limit: 1) == bytes?.prefix(1).map { $0 })
            }
            #expect(try await store.blobTally(of: name.scope, by: nil) == model.tally(name.scope))
        }
    }
}
