import Foundation
import TidemarkServer

/// A message between nodes: it says which scopes have changed, so that a node where somebody waits for one hears of it
/// sooner than by looking. A hint is only a reason to look: it may be lost, and its content is never believed.
///
/// A message names the node that speaks and, on a line each, scopes; or a star, where there are too many: look at all.
/// It goes by `NOTIFY` on a channel of the schema's name, from a connection that does nothing else: inside the
/// transactions that write it would make their commits wait for each other.
struct Hint: Hashable, Sendable {
    /// Scopes to look at, gathered until somebody takes them.
    enum Scopes: Hashable, Sendable {
        case these(Set<String>)
        case all

        /// Names that are gathered, at most; with more of them, all scopes are meant.
        static let limit = 2000

        static let none = Scopes.these([])

        func contains(_ name: String) -> Bool {
            switch self {
            case .these(let names): names.contains(name)
            case .all: true
            }
        }

        mutating func add(_ more: Scopes) {
            switch more {
            case .these(let names): add(names)
            case .all: self = .all
            }
        }

        mutating func add(_ more: some Sequence<String>) {
            guard case .these(var names) = self else { return }
            // Held once, so that it grows where it stands.
            self = .all
            for name in more {
                names.insert(name)
                if names.count > Self.limit { return }
            }
            self = .these(names)
        }
    }

    var node: String
    var scopes: Scopes

    private static let star = "*"

    /// Bytes of a message: PostgreSQL takes 7999.
    static let messageBytes = 7900

    /// Messages that are sent together, at most; where more were needed, all scopes are meant.
    private static let messageLimit = 4

    static func messages(of scopes: Scopes, from node: String) -> [String] {
        let all = [node + "\n" + star]
        guard case .these(let names) = scopes else { return all }
        var messages: [String] = []
        var text = node
        for scope in names.sorted() {
            if text.utf8.count + 1 + scope.utf8.count > messageBytes {
                messages.append(text)
                text = node
            }
            text += "\n" + scope
        }
        messages.append(text)
        return messages.count > messageLimit ? all : messages
    }

    /// Reads what anybody may have sent who can reach the database.
    init(_ message: String) {
        let lines = message.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        node = lines.first ?? ""
        scopes = lines.dropFirst().contains(Self.star) ? .all : .these(Set(lines.dropFirst()))
    }
}

/// Scopes to look at, gathered from one thread or many until somebody takes them.
final class HintedScopes: Sendable {
    private struct State {
        var scopes = Hint.Scopes.none
        var isTime = false
        var wake: AsyncStream<Void>.Continuation?
    }

    private let state = Guarded(State())

    func add(_ scopes: Hint.Scopes) {
        state.withLock { state in
            state.scopes.add(scopes)
            state.wake?.yield()
        }
    }

    /// Says that it is time to look at all that is watched.
    func look() {
        state.withLock { state in
            state.isTime = true
            state.wake?.yield()
        }
    }

    /// Yields an element whenever there is something to take.
    func wakes() -> AsyncStream<Void> {
        let (wakes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { $0.wake = continuation }
        return wakes
    }

    /// Takes what was gathered, and whether it is time to look at all.
    func take() -> (scopes: Hint.Scopes, isTime: Bool) {
        state.withLock { state in
            defer { (state.scopes, state.isTime) = (.none, false) }
            return (state.scopes, state.isTime)
        }
    }
}
