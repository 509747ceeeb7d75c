import TidemarkServer

/// One run of a simulated server's program, which can end at any use of its store.
///
/// Unchecked because everything of a world happens on the world's own thread.
final class ServerLife: @unchecked Sendable {
    /// Thrown in the place of all that a dead server still tries to do.
    struct Over: Error {}

    private(set) var isOver = false
    /// Uses of the store until it dies, each counted three times: before it, within it and after it.
    var remaining: Int?
    /// Told where it died.
    var died: (String) -> Void = { _ in }

    /// - Parameter body: is told whether the server dies within it, and is to be undone.
    func use<Result>(_ point: String, _ body: (_ dies: Bool) async throws -> Result) async throws -> Result {
        guard !isOver else { throw Over() }
        guard let left = remaining else { return try await body(false) }
        remaining = left - 3
        guard left < 3 else { return try await body(false) }
        if left > 0 { _ = try? await body(left == 1) }
        isOver = true
        died("\(["before", "within", "after"][left]) \(point)")
        throw Over()
    }
}

/// The store as a server uses it that may die at any moment: each transaction has happened then, or not.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct MortalStore: ChangeStore {
    private let store: any SimulatedStore
    private let life: ServerLife

    init(_ store: any SimulatedStore, _ life: ServerLife) { (self.store, self.life) = (store, life) }

    var tokenKey: [UInt8] { store.tokenKey }

    func read<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result {
        try await life.use("read") { _ in try await store.read(scope, for: caller, body) }
    }

    func write<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        try await life.use("write") { dies in
            try await store.write(scope, for: caller) { writer in
                let result = try body(writer)
                if dies { throw ServerLife.Over() }
                return result
            }
        }
    }

    func sweep(supersededBefore moment: Int64, limit: Int) async throws -> Int {
        try await life.use("sweep") { _ in try await store.sweep(supersededBefore: moment, limit: limit) }
    }

    func scopes(after scope: Scope?, limit: Int) async throws -> [Scope] {
        try await life.use("scopes") { _ in try await store.scopes(after: scope, limit: limit) }
    }

    func ageClock() async throws -> Int64? { try await life.use("ageClock") { _ in try await store.ageClock() } }

    func setAgeClock(_ moment: Int64) async throws {
        try await life.use("setAgeClock") { _ in try await store.setAgeClock(moment) }
    }

    func rejections(in scope: Scope?, id: Int64?, limit: Int) async throws -> [StoredRejection] {
        try await life.use("rejections") { _ in try await store.rejections(in: scope, id: id, limit: limit) }
    }

    func devices(_ query: FleetQuery) async throws -> FleetPage {
        try await life.use("devices") { _ in try await store.devices(query) }
    }

    func discardRejection(_ id: Int64) async throws -> Bool {
        try await life.use("discardRejection") { _ in try await store.discardRejection(id) }
    }
}
