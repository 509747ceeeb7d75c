import GRDB
import Observation
import Tidemark

/// The first screen: the notes, each with how it stands, and one line about all of them.
@MainActor @Observable final class NotesScreen {
    struct Row: Identifiable, FetchableRecord {
        var note: Note
        var state: RecordState
        var id: String { note.id }

        init(row: GRDB.Row) throws {
            note = try Note(row: row)
            state = try RecordState(row: row)
        }

        static let all: SQLRequest<Row> = "SELECT * FROM note LEFT JOIN tidemark_state_note USING (id) ORDER BY id"
    }

    private(set) var rows: [Row] = []
    private(set) var error: SyncError?
    let shown = ObservableStatus()

    private let notebook: Notebook

    init(_ notebook: Notebook) { self.notebook = notebook }

    /// Keeps the screen up to date until the task is cancelled.
    func follow() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.followNotes() }
            group.addTask { await self.shown.follow(self.notebook.sync) }
        }
    }

    /// The app's own observation: it fires for what the user writes, for what the engine brings, and where a note's
    /// state changes.
    private func followNotes() async {
        do {
            try await notebook.sync.install()
            let observation = ValueObservation.tracking { db in try Row.all.fetchAll(db) }
            for try await rows in observation.values(in: notebook.database) { self.rows = rows }
        } catch { self.error = error as? SyncError ?? SyncError(.databaseFailed, "The notes cannot be read.") }
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
        case .inferred: ("≈", "changed while nobody watched")
        case .quarantined: ("!", "does not fit here")
        }
    }
}
