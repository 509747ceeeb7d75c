import GRDB
import Observation
import Tidemark

/// The first screen: the notes, each with how it stands, and one line about all of them.
@MainActor @Observable final class NotesScreen {
    struct Row: Identifiable {
        var note: Note
        /// `nil` for the moment until it has been asked for.
        var state: RecordState?
        var id: String { note.id }
    }

    private(set) var rows: [Row] = []
    private(set) var status = SyncStatus()
    private(set) var progress = SyncProgress()

    private let notebook: Notebook
    private var readings = 0

    init(_ notebook: Notebook) { self.notebook = notebook }

    /// Keeps the screen up to date until the task is cancelled.
    func follow() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.followNotes() }
            group.addTask { await self.followStatus() }
            group.addTask { await self.followProgress() }
        }
    }

    /// The app's own observation: it fires for what the user writes and for what the engine brings.
    private func followNotes() async {
        let observation = ValueObservation.tracking { db in try Note.order(Column("id")).fetchAll(db) }
        do {
            for try await notes in observation.values(in: notebook.database) {
                // What was known of a note says nothing about an edit of it.
                let known = Dictionary(rows.map { ($0.note, $0.state) }) { $1 }
                rows = notes.map { Row(note: $0, state: known[$0] ?? nil) }
                await readStates()
            }
        } catch { status.lastError = SyncError(.databaseFailed, "The notes cannot be read.") }
    }

    private func followStatus() async {
        for await status in notebook.sync.statusUpdates {
            self.status = status
            await readStates()
        }
    }

    private func followProgress() async {
        for await progress in notebook.sync.progressUpdates { self.progress = progress }
    }

    /// Two readings may overlap; the one that began last knows best.
    private func readStates() async {
        readings += 1
        let reading = readings
        var states: [String: RecordState] = [:]
        for row in rows { states[row.id] = try? await notebook.sync.state(of: row.note) }
        guard reading == readings else { return }
        for index in rows.indices { rows[index].state = states[rows[index].id] }
    }
}

extension RecordState {
    /// One sign for a row, and a word for whoever asks what it means.
    var sign: (symbol: String, word: String) {
        switch self {
        case .confirmed: ("✓", "on the server")
        case .pending: ("↑", "to send")
        case .sent: ("⇡", "sent")
        case .rejected: ("✗", "refused")
        case .blocked: ("…", "waits for another note")
        case .undecided: ("?", "edited elsewhere, too")
        case .quarantined: ("!", "does not fit here")
        }
    }
}
