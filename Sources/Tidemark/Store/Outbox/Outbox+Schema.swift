import GRDB

extension Outbox {
    static let schema = """
        -- The outbox. members: the sealed operation as on the wire, without its key. content: its fields whole, where
        -- it carries patches. lane and number are NULL for one that could not be put on the wire. state: how
        -- it stands (Outbox.State). finished_at: when its verdict came.
        CREATE TABLE tidemark_operation(
            id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, lane TEXT, number INTEGER,
            entity TEXT NOT NULL, record TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, members BLOB NOT NULL,
            content BLOB, is_insert INTEGER NOT NULL DEFAULT 0, edited_at INTEGER, sealed_at INTEGER NOT NULL,
            sent_at INTEGER, finished_at INTEGER, version INTEGER, code TEXT, detail TEXT, hint TEXT,
            -- The same members with ids for temporary ones, to read here; and the group that it is taken with.
            resolved BLOB, in_group TEXT);
        CREATE UNIQUE INDEX tidemark_operation_key ON tidemark_operation(lane, number);
        CREATE INDEX tidemark_operation_record ON tidemark_operation(entity, record);
        \(indexes)
        """

    /// The indexes by an operation's state.
    static let indexes = """
        CREATE INDEX tidemark_operation_open ON tidemark_operation(scope, id) WHERE \(isOpen);
        CREATE INDEX tidemark_operation_rejected ON tidemark_operation(id) WHERE state = 'rejected';
        CREATE INDEX tidemark_operation_replay ON tidemark_operation(scope) WHERE \(isReplay);
        CREATE INDEX tidemark_operation_packable ON tidemark_operation(scope, lane, id) WHERE \(isPackable);
        CREATE INDEX tidemark_operation_finished ON tidemark_operation(scope, finished_at) WHERE \(isFinished);
        """

    /// Before version 11 the indexes' conditions were spelled in another way, and no query would use them.
    static func renewIndexes(_ db: Database) throws {
        for name in ["open", "rejected", "replay", "packable", "finished"] {
            try db.execute(sql: "DROP INDEX IF EXISTS tidemark_operation_\(name)")
        }
        try db.execute(sql: indexes)
    }
}
