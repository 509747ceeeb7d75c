import GRDB
import TidemarkWire

/// How a scope stood when a comparison began. While it stands so, the server's rows as this device knows them are the
/// same, whatever the app writes meanwhile.
struct ScopeStand: Hashable, Sendable {
    var checkpoint: String
    var complete: Version
    var schemaVersion: Int64

    /// `nil` where the rows are not whole as of one version: in mid-scan, while it is filled, or with rows ahead.
    init?(_ db: Database, _ scope: Scope) throws {
        let record = try ScopeRecord.read(db, scope)
        guard let checkpoint = record.checkpoint, let complete = record.complete, record.isFilled,
            !record.isScanning, try KnownVersions.isEmpty(db, scope)
        else { return nil }
        self.checkpoint = checkpoint
        self.complete = complete
        schemaVersion = try SyncSchema.version(db)
    }
}

/// The scope does not stand as it did when the comparison began, or its rows are not whole as of one version: mostly
/// another engine on this file has applied something.
struct StandMoved: Error {}

/// Sums up one table's rows of one scope (``ServerRows``), in steps of a bounded number of rows, each in a transaction
/// of its own, so that no write waits long.
struct ServerRowScan {
    let shape: TableSchema
    let scope: Scope
    let stand: ScopeStand
    /// The range that is of interest, where the key's order is that of record ids; else the whole table is read.
    private let after: Cell?
    private let through: Cell?

    init(_ shape: TableSchema, _ scope: Scope, _ stand: ScopeStand, after: String? = nil, through: String? = nil) {
        (self.shape, self.scope, self.stand) = (shape, scope, stand)
        let isOrdered = shape.key.count == 1 && shape.key[0].affinity == .text
        self.after = isOrdered ? after.map { Cell.text($0) } : nil
        self.through = isOrdered ? through.map { Cell.text($0) } : nil
    }

    func run(_ file: AppFile, into sums: LocalDigest) async throws -> LocalDigest {
        var sums = sums
        var last: [Cell]? = after.map { [$0] }
        while true {
            let (start, grown) = (last, sums)
            (last, sums) = try await file.read { db in
                guard try ScopeStand(db, scope) == stand else { throw StandMoved() }
                var sums = grown
                let end = try ServerRows(shape: shape, scope: scope).step(db, from: start, through: through) {
                    sums.add($0, $1)
                }
                return (end, sums)
            }
            if last == nil { return sums }
        }
    }
}
