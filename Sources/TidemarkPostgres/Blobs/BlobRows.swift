import TidemarkServer

/// Blobs and parts as rows: their bytes are pieces, each a row of its own under the offset of its first byte
/// (decision 17).
enum BlobRows {
    /// The statements that make the tables.
    static func schema(_ partitions: Partitions) -> [String] {
        partitions.table(
            "blob",
            """
            size bigint NOT NULL, seen_at bigint NOT NULL, place bigint NOT NULL, scope text COLLATE "C" NOT NULL,
            hash text COLLATE "C" NOT NULL, PRIMARY KEY (scope, hash)
            """, fill: 80)
            + partitions.table(
                "blob_piece",
                """
                place bigint NOT NULL, start bigint NOT NULL, scope text COLLATE "C" NOT NULL, bytes bytea NOT NULL,
                PRIMARY KEY (scope, place, start)
                """) + [
                // Pictures and recordings are compressed already.
                "ALTER TABLE blob_piece ALTER bytes SET STORAGE EXTERNAL",
                """
                CREATE TABLE blob_part (
                    place bigint NOT NULL, size bigint NOT NULL, kept bigint NOT NULL, written_at bigint NOT NULL,
                    scope text COLLATE "C" NOT NULL, principal bytea NOT NULL, hash text COLLATE "C" NOT NULL,
                    PRIMARY KEY (scope, principal, hash)) WITH (fillfactor = 60)
                """,
                // In step with both.
                """
                CREATE TABLE blob_scope (
                    blobs bigint NOT NULL, parts bigint NOT NULL, bytes bigint NOT NULL,
                    scanned_at bigint NOT NULL DEFAULT 0, scope text COLLATE "C" PRIMARY KEY) WITH (fillfactor = 60)
                """,
            ]
    }

    /// The tables, each with a column `scope`.
    static let tables = ["blob", "blob_piece", "blob_part", "blob_scope"]

    static func parameters(_ name: BlobPartName) -> [Parameter] {
        [.text(name.scope.name), .text(name.principal), .text(name.hash)]
    }

    // MARK: Erased scopes

    /// An erasure of the scope waits for this transaction, and so finds what it made. A scope without a row is locked
    /// by its name for that, and looked for again, since it may have been erased meanwhile.
    private static let erased = Statement(
        "blobs of erased", "SELECT erased_at IS NOT NULL FROM scope WHERE name = $1 FOR SHARE")

    private static func refuseErased(_ session: Session, _ scope: Scope) throws {
        var answer = try session.ask(erased, .text(scope.name))
        if answer.count == 0 {
            try ScopeRow.lockName(of: scope, session)
            answer = try session.ask(erased, .text(scope.name))
        }
        if answer.count > 0, answer.flag(0, 0) { throw BlobRefusal.erased }
    }

    private static let lock = Statement("lock blobs", "SELECT 1 FROM blob_scope WHERE scope = $1 FOR UPDATE")

    /// Locks the scope's count until the transaction ends. Each transaction that begins, finishes or removes a part or
    /// a blob of the scope does so first, before it touches their rows; so two of them run one after the other, and
    /// never wait for each other in a circle.
    private static func lock(_ session: Session, _ scope: Scope) throws {
        _ = try session.ask(lock, .text(scope.name))
    }

    // MARK: Parts

    private static let find = Statement(
        "blob part",
        "SELECT place, size, kept, written_at FROM blob_part WHERE scope = $1 AND principal = $2 AND hash = $3")

    static func part(_ session: Session, _ name: BlobPartName) throws -> BlobPart? {
        let answer = try session.ask([Request(find, parameters(name))])[0]
        guard answer.count > 0 else { return nil }
        return BlobPart(
            name: name, size: try answer.integer(0, 1), kept: try answer.integer(0, 2),
            written: try answer.integer(0, 3), place: try answer.integer(0, 0))
    }

    private static let forget = Statement(
        "forget blob part",
        """
        DELETE FROM blob_part WHERE scope = $1 AND principal = $2 AND hash = $3 AND ($4::bigint IS NULL OR place = $4)
        RETURNING place, size
        """)
    private static let removePieces = Statement(
        "remove blob pieces", "DELETE FROM blob_piece WHERE scope = $1 AND place = $2")

    static func drop(_ session: Session, _ part: BlobPart) throws {
        try lock(session, part.name.scope)
        try drop(session, part.name, at: part.place)
    }

    /// Removes a part with its pieces, whichever has the name or the one at a place.
    private static func drop(_ session: Session, _ name: BlobPartName, at place: Int64?) throws {
        let answer = try session.change(Request(forget, parameters(name) + [.optional(place)]))
        guard answer.count > 0 else { return }
        try session.write(removePieces, .text(name.scope.name), .integer(try answer.integer(0, 0)))
        try count(session, name.scope, BlobTally(parts: -1, bytes: -(try answer.integer(0, 1))))
    }

    private static let insert = Statement(
        "begin blob part",
        """
        INSERT INTO blob_part (scope, principal, hash, place, size, kept, written_at)
        VALUES ($1, $2, $3, $4, $5, 0, $6)
        """)

    static func begin(
        _ session: Session, _ name: BlobPartName, size: Int64, within room: BlobRoom, at moment: Int64
    ) throws -> BlobPart {
        try refuseErased(session, name.scope)
        // Counted first: that is the lock, also where the scope has no count yet.
        try count(session, name.scope, BlobTally(parts: 1, bytes: size))
        try drop(session, name, at: nil)
        let all = try tally(session, of: name.scope, by: nil)
        let own = try tally(session, of: name.scope, by: name.principal)
        let weight = own.weight + BlobTally(parts: 1, bytes: size).weight
        guard own.parts < room.parts, weight <= room.caller else { throw BlobRefusal.callerFull }
        guard all.weight <= room.scope else { throw BlobRefusal.scopeFull }
        let place = Int64.random(in: .min ... .max)
        try session.write(Request(insert, parameters(name) + [.integer(place), .integer(size), .integer(moment)]))
        return BlobPart(name: name, size: size, kept: 0, written: moment, place: place)
    }

    private static let grow = Statement(
        "grow blob part",
        """
        UPDATE blob_part SET kept = kept + $5, written_at = greatest(written_at, $6)
        WHERE scope = $1 AND principal = $2 AND hash = $3 AND place = $4 AND kept = $7
        """)
    private static let addPiece = Statement(
        "add blob piece", "INSERT INTO blob_piece (scope, place, start, bytes) VALUES ($1, $2, $3, $4)")

    static func append(_ session: Session, _ bytes: [UInt8], to part: BlobPart, at moment: Int64) throws {
        let numbers: [Parameter] = [
            .integer(part.place), .integer(Int64(bytes.count)), .integer(moment), .integer(part.kept),
        ]
        guard try session.change(Request(grow, parameters(part.name) + numbers)).affected > 0 else {
            throw BlobRefusal.moved
        }
        try session.write(
            addPiece, .text(part.name.scope.name), .integer(part.place), .integer(part.kept), .bytes(bytes))
    }

    private static let complete = Statement(
        "finish blob part",
        """
        DELETE FROM blob_part WHERE scope = $1 AND principal = $2 AND hash = $3 AND place = $4 AND kept = size
        """)
    private static let add = Statement(
        "add blob",
        """
        INSERT INTO blob (scope, hash, size, place, seen_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (scope, hash) DO UPDATE SET seen_at = greatest(blob.seen_at, excluded.seen_at) RETURNING place
        """)

    static func finish(_ session: Session, _ part: BlobPart, at moment: Int64) throws -> Bool {
        let scope = Parameter.text(part.name.scope.name)
        try refuseErased(session, part.name.scope)
        try lock(session, part.name.scope)
        guard try session.change(Request(complete, parameters(part.name) + [.integer(part.place)])).affected > 0 else {
            throw BlobRefusal.moved
        }
        let isNew =
            try session.ask(
                add, scope, .text(part.name.hash), .integer(part.size), .integer(part.place), .integer(moment)
            ).integer(0, 0) == part.place
        if !isNew { try session.write(removePieces, scope, .integer(part.place)) }
        let added = isNew ? BlobTally(blobs: 1, parts: -1) : BlobTally(parts: -1, bytes: -part.size)
        try count(session, part.name.scope, added)
        return isNew
    }

    private static let list = Statement(
        "old blob parts",
        """
        SELECT scope, principal, hash, place, size, kept, written_at FROM blob_part
        WHERE ($1::text IS NULL OR scope = $1) AND ($2::bytea IS NULL OR principal = $2) AND written_at < $3
        ORDER BY written_at LIMIT $4
        """)

    static func parts(
        _ session: Session, in scope: Scope?, of principal: String?, writtenBefore moment: Int64, limit: Int
    ) throws -> [BlobPart] {
        let answer = try session.ask(
            list, scope.map { .text($0.name) } ?? .null, principal.map { .text($0) } ?? .null, .integer(moment),
            .integer(Int64(limit)))
        return try (0..<answer.count).compactMap { row in
            guard let scope = Scope(answer.text(row, 0)) else { return nil }
            let name = BlobPartName(scope: scope, principal: answer.text(row, 1), hash: answer.text(row, 2))
            return BlobPart(
                name: name, size: try answer.integer(row, 4), kept: try answer.integer(row, 5),
                written: try answer.integer(row, 6), place: try answer.integer(row, 3))
        }
    }

    // MARK: Blobs

    private static let removeBlob = Statement(
        "remove blob", "DELETE FROM blob WHERE scope = $1 AND hash = $2 AND seen_at < $3 RETURNING place, size")

    static func remove(_ session: Session, _ hash: String, in scope: Scope, seenBefore moment: Int64) throws -> Bool {
        try lock(session, scope)
        let answer = try session.ask(removeBlob, .text(scope.name), .text(hash), .integer(moment))
        guard answer.count > 0 else { return false }
        try session.write(removePieces, .text(scope.name), .integer(try answer.integer(0, 0)))
        try count(session, scope, BlobTally(blobs: -1, bytes: -(try answer.integer(0, 1))))
        return true
    }

    // MARK: Counting

    private static let addCount = Statement(
        "count blobs",
        """
        INSERT INTO blob_scope (scope, blobs, parts, bytes) VALUES ($1, $2, $3, $4)
        ON CONFLICT (scope) DO UPDATE SET blobs = blob_scope.blobs + excluded.blobs,
            parts = blob_scope.parts + excluded.parts, bytes = blob_scope.bytes + excluded.bytes
        """)

    private static func count(_ session: Session, _ scope: Scope, _ added: BlobTally) throws {
        try session.write(
            addCount, .text(scope.name), .integer(Int64(added.blobs)), .integer(Int64(added.parts)),
            .integer(added.bytes))
    }

    private static let ofScope = Statement(
        "blob tally", "SELECT blobs, parts, bytes FROM blob_scope WHERE scope = $1")
    private static let ofCaller = Statement(
        "blob parts tally",
        """
        SELECT 0::bigint, count(*), coalesce(sum(size), 0)::bigint FROM blob_part WHERE scope = $1 AND principal = $2
        """)

    static func tally(_ session: Session, of scope: Scope, by principal: String?) throws -> BlobTally {
        guard let principal else { return try tally(session.ask(ofScope, .text(scope.name))) }
        return try tally(session.ask(ofCaller, .text(scope.name), .text(principal)))
    }

    private static func tally(_ answer: QueryResult) throws -> BlobTally {
        guard answer.count > 0 else { return BlobTally() }
        return BlobTally(
            blobs: Int(try answer.integer(0, 0)), parts: Int(try answer.integer(0, 1)), bytes: try answer.integer(0, 2))
    }
}
