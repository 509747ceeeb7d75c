public import Foundation
package import TidemarkCore
public import TidemarkWire

/// Something that wants to hear of each commit: a push notification, a cache, a search index (B3).
///
/// It is told which scope has a new head, and nothing of what is in it. It is told **at least once** of every head that
/// is the newest for long enough, also where the process ended in between: what was told is kept in the store. The
/// heads of one scope come in order and one at a time; commits that come while a call runs become one call with the
/// newest head. Commits never wait for a hook.
///
/// ```swift
/// var configuration = SyncServer.Configuration()
/// configuration.hooks = [
///     CommitHook("push", scopes: ["user:*"]) { notice in try await push(notice.scope, notice.head) }
/// ]
/// ```
public struct CommitHook: Sendable {
    /// Where a hook begins that the store has not heard of yet.
    public enum Start: String, CaseIterable, Sendable {
        /// At the heads that the scopes have when the hook first runs: it is told what is committed from then on.
        case now
        /// At the beginning: it is told the head of every scope once.
        case start
    }

    /// The name under which the store keeps what was told: 1 to 64 of `a-z`, `A-Z`, `0-9`, `-`, `_`.
    public let name: String
    /// Scopes that it is told of: names, or beginnings followed by `*`; empty: all. Sub-scopes come with their scope.
    public var scopes: [String]
    /// Where it begins.
    public var start: Start
    /// Failures in a row after which a head is given up; the scope's next commit is told. `nil`: never.
    public var retries: Int?
    /// How long a call may take; then its task is cancelled, and it has failed. A closure that goes on all the same
    /// holds up its own scope alone, until 64 such closures run: then no other call begins.
    public var timeout: Duration = .seconds(60)
    var settings = HookMachine.Settings()
    let call: @Sendable (CommitNotice) async -> (outcome: HookMachine.Outcome, reason: String)

    /// Makes a hook of a closure.
    ///
    /// - Parameters:
    ///   - name: under which the store keeps what was told. A malformed name is a programming error and stops the
    ///     program.
    ///   - scopes: names, or beginnings followed by `*`; empty: all.
    ///   - start: where it begins.
    ///   - tell: is called on any executor, for several scopes at once; where it throws, it is called again after
    ///     growing waits. One that takes longer than ``timeout`` is cancelled and has failed.
    public init(
        _ name: String, scopes: [String] = [], start: Start = .now,
        tell: @escaping @Sendable (CommitNotice) async throws -> Void
    ) {
        self.init(name, scopes: scopes, start: start) { notice in
            do {
                try await tell(notice)
                return (.taken, "")
            } catch {
                return (.failed(), "\(type(of: error))")
            }
        }
    }

    /// - Parameter call: answers how it went, and why in words for a log.
    package init(
        _ name: String, scopes: [String], start: Start,
        calling call: @escaping @Sendable (CommitNotice) async -> (outcome: HookMachine.Outcome, reason: String)
    ) {
        precondition(Self.isName(name), "a hook's name is \(Self.nameHint)")
        (self.name, self.scopes, self.start, self.call) = (name, scopes, start, call)
    }

    /// What a name is made of.
    package static let nameHint = "1 to 64 of a-z, A-Z, 0-9, - and _"

    /// Whether a text may be a hook's name.
    package static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// Whether the hook is told of a scope.
    package func includes(_ scope: Scope) -> Bool {
        let name = scope.parent.name.utf8
        return scopes.isEmpty
            || scopes.contains { pattern in
                pattern.utf8.last == UInt8(ascii: "*")
                    ? name.starts(with: pattern.utf8.dropLast()) : name.elementsEqual(pattern.utf8)
            }
    }
}

/// The news that a scope has a new head.
public struct CommitNotice: Hashable, Sendable {
    /// The scope.
    public var scope: Scope
    /// Its newest version.
    public var head: Version
    /// The name of the scope's history up to there, as on the server's answers. Heads of one epoch are numbers of one
    /// history; where it is another one the store was opened anew, or put back from a backup, and counts from an
    /// earlier head again.
    public var epoch: String
    /// How many versions have come since the head that was told before.
    public var changes: Int64
    /// When the head was committed.
    public var time: Date

    /// Makes news from its parts, for tests of what a hook does.
    public init(scope: Scope, head: Version, epoch: String, changes: Int64, time: Date) {
        (self.scope, self.head, self.epoch, self.changes, self.time) = (scope, head, epoch, changes, time)
    }
}

/// What a hook has done, for logs and counters.
public struct HookEvent: Hashable, Sendable {
    /// What became of a notice.
    public enum Kind: Hashable, Sendable {
        /// It was taken.
        case told
        /// It is sent again after that time.
        case failed(retryAfter: Duration)
        /// It was refused, or has failed, too often, and is sent no more; the scope's next commit is.
        case givenUp
        /// The receiver wants no more: the hook rests until the server starts again.
        case stopped
        /// The store has failed for a while: there may be news that nobody is told of. Said once a minute.
        case unavailable
    }

    /// The hook's name.
    public var hook: String
    /// The news; `nil` for what is of no one scope.
    public var notice: CommitNotice?
    /// How the call ended.
    public var kind: Kind
    /// Why, without row data and secrets: `status 503`.
    public var reason: String
    /// From the commit to now; for a store that fails, since when it does.
    public var lag: Duration
    /// Scopes that this node knows to have news for the hook.
    public var behind: Int

    /// Makes an event from its parts, for tests of what reads it.
    public init(
        hook: String, notice: CommitNotice? = nil, kind: Kind, reason: String = "", lag: Duration = .zero,
        behind: Int = 0
    ) {
        self.hook = hook
        self.notice = notice
        self.kind = kind
        self.reason = reason
        self.lag = lag
        self.behind = behind
    }
}

extension HookEvent: CustomStringConvertible {
    /// A sentence for a log: `Hook push has failed for w:1 at version 7: status 503.`
    public var description: String {
        let end =
            switch kind {
            case .told: "has told the news"
            case .failed: "has failed"
            case .givenUp: "has given up"
            case .stopped: "has stopped"
            case .unavailable: "is without its store"
            }
        let place = notice.map { " for \($0.scope) at version \($0.head)" } ?? ""
        return "Hook \(hook) \(end)\(place)\(reason.isEmpty ? "" : ": \(reason.printable)")."
    }
}
