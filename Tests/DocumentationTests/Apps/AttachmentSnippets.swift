import Foundation
import GRDB
import Tidemark
import TidemarkWire

struct Note: Codable, FetchableRecord, PersistableRecord {
    var id: String
    var title: String
    var photo: String?
}

private func attaching(
    database: DatabasePool, transport: any Transport, folder: URL, picked: URL, note: Note,
    show: (URL) -> Void, showPlaceholder: () -> Void
) async throws {
    // snippet: attachments-engine
    let sync = try SyncEngine(
        for: database,
        tables: [
            .table(
                "note",
                attachments: [
                    .attachment("photo"),  // fetched where the app asks for it
                    .attachment("thumbnail", download: .automatic),  // comes by itself
                ])
        ],
        scopes: ["workspace:7"],
        transport: transport,
        attachments: AttachmentConfiguration(folder: folder))
    let running = Task { try await sync.run() }
    // end snippet

    // snippet: attachments-add
    let photo = try await sync.attachments.add(contentsOf: picked)
    try await database.write { db in
        var note = note
        note.photo = photo.description
        try note.update(db)
    }
    // end snippet
    try await showing(sync, note, show, showPlaceholder)
    running.cancel()
}

private func showing(
    _ sync: SyncEngine, _ note: Note, _ show: (URL) -> Void, _ showPlaceholder: () -> Void
) async throws {
    // snippet: attachments-show
    if let photo = note.photo.flatMap({ BlobReference($0) }) {
        if let url = sync.attachments.url(for: photo) {
            show(url)
        } else {
            showPlaceholder()
            show(try await sync.attachments.fetch(photo))
        }
    }
    // end snippet
}

// snippet: attachments-list
struct NoteRow: FetchableRecord {
    var note: Note
    var photo: AttachmentState?

    init(row: Row) throws {
        note = try Note(row: row)
        photo = AttachmentState(row: row)
    }

    static let all: SQLRequest<NoteRow> = """
        SELECT note.*, a.state, a.bytes, a.reason
        FROM note LEFT JOIN tidemark_attachment AS a ON a.reference = note.photo AND a.scope = 'workspace:7'
        ORDER BY title
        """
}
// end snippet
