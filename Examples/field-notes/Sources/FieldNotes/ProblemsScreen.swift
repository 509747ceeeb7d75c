import Observation
import Tidemark

/// The second screen: what needs a decision of the user's, and the decisions.
@MainActor @Observable final class ProblemsScreen {
    private(set) var conflicts: [Conflict] = []
    private(set) var refused: [RejectedOperation] = []

    private let sync: SyncEngine

    init(_ notebook: Notebook) { sync = notebook.sync }

    /// Keeps the screen up to date until the task is cancelled.
    func follow() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.followConflicts() }
            group.addTask { await self.followRefused() }
        }
    }

    private func followConflicts() async {
        for await conflicts in sync.conflictUpdates { self.conflicts = conflicts.filter(\.isOpen) }
    }

    private func followRefused() async {
        for await refused in sync.rejectedUpdates { self.refused = refused }
    }

    func keepMine(_ conflict: Conflict) async throws { try await sync.resolve(conflict, with: .keepMine) }

    func takeTheirs(_ conflict: Conflict) async throws { try await sync.resolve(conflict, with: .takeTheirs) }

    /// Writes a refused note again, with another title.
    func retry(_ operation: RejectedOperation, title: String) async throws {
        try await sync.retry(operation, changing: ["title": .text(title)])
    }

    /// Lets go of a refused edit: the note is the server's again.
    func discard(_ operation: RejectedOperation) async throws { try await sync.discard(operation) }
}

extension Conflict {
    /// Both titles, as far as there are any.
    var titles: (mine: String, theirs: String) {
        (self["title"]?.mine?.text ?? "(deleted)", self["title"]?.theirs?.text ?? "(deleted)")
    }
}

extension RejectedOperation {
    var title: String { fields["title"]?.text ?? "(deleted)" }
}

extension Value {
    var text: String? { if case .text(let text) = self { text } else { nil } }
}
