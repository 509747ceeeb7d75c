import GRDB
import Tidemark
import TidemarkServer
package import TidemarkTesting

/// Pictures in two albums, each of which is a scope. A picture's bytes travel apart from its row, and the same bytes
/// are added again and again, on all devices.
package enum AlbumApp {
    package static var app: SimulatedApp {
        var app = SimulatedApp(
            tables: [
                .table(
                    "picture", scope: .column("album", prefix: "album:"),
                    attachments: [.attachment("image"), .attachment("thumb", download: .automatic)])
            ],
            scopes: ["album:a", "album:b"], acts: acts
        ) { db in
            try db.execute(
                sql: """
                    CREATE TABLE picture (
                        id TEXT PRIMARY KEY, album TEXT NOT NULL, title TEXT, image TEXT, thumb TEXT);
                    """)
        }
        app.entities = [.state("picture", attachments: ["image", "thumb"])]
        return app
    }

    private static var acts: [SimulatedApp.Act] {
        [
            .init("add", adding: bytes) { db, choices, image in
                try db.act(
                    "INSERT OR IGNORE INTO picture (id, album, title, image) VALUES (?, ?, ?, ?)",
                    [id(&choices), choices.pick(["a", "b"]), "t\(choices.serial)", image.description])
            },
            .init("replace", adding: bytes) { db, choices, image in
                try db.act("UPDATE picture SET image = ? WHERE id = ?", [image.description, id(&choices)])
            },
            .init("addThumb", adding: bytes) { db, choices, thumb in
                try db.act(
                    """
                    INSERT INTO picture (id, album, thumb) VALUES (?1, ?2, ?3)
                    ON CONFLICT (id) DO UPDATE SET thumb = ?3
                    """, [id(&choices), choices.pick(["a", "b"]), thumb.description])
            },
            .init("title") { db, choices in
                try db.act("UPDATE picture SET title = ? WHERE id = ?", ["t\(choices.serial)", id(&choices)])
            },
            .init("move") { db, choices in
                try db.act("UPDATE picture SET album = ? WHERE id = ?", [choices.pick(["a", "b"]), id(&choices)])
            },
            .init("remove") { db, choices in
                try db.act(
                    "UPDATE picture SET \(choices.pick(["image", "thumb"])) = NULL WHERE id = ?", [id(&choices)])
            },
            .init("delete") { db, choices in try db.act("DELETE FROM picture WHERE id = ?", [id(&choices)]) },
        ]
    }

    private static func id(_ choices: inout Choices) -> String { "p\(choices.pick(0..<4))" }

    /// Some are one part of an upload, some several, and two of each size differ.
    private static func bytes(_ choices: inout Choices) -> [UInt8] {
        let (size, seed) = (choices.pick([0, 1, 100, 128, 300, 600]), choices.pick(0..<2))
        return (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) }
    }
}
