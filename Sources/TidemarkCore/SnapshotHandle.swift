package import TidemarkWire

/// A scan in key order, fixed at one version (Protocol.md): a snapshot, or a delta with critical entities first.
package struct SnapshotHandle: Hashable, Sendable {
    package var epoch: Epoch
    /// The version as of which rows are shown.
    package var horizon: Version
    /// The version up to which the reader has the scope already: 0 for a snapshot.
    package var base: Version
    /// A number for the rows of the scan and their order: under another number its cursors mean nothing, and its end is
    /// no end.
    package var scan: Int64

    package init(epoch: Epoch, horizon: Version, base: Version, scan: Int64) {
        self.epoch = epoch
        self.horizon = horizon
        self.base = base
        self.scan = scan
    }

    /// The checkpoint of the boundary, which the reader stores when the scan has ended.
    package var checkpoint: Checkpoint {
        Checkpoint(epoch: epoch, position: horizon, horizon: horizon, complete: horizon, origin: nil)
    }

    package func token(scope: Scope, key: [UInt8]) -> String {
        var writer = ByteWriter()
        write(to: &writer)
        return SealedToken.seal(writer.bytes, .snapshot, scope: scope, key: key)
    }

    package init?(token: String, scope: Scope, key: [UInt8]) {
        guard var reader = SealedToken.open(token, .snapshot, scope: scope, key: key) else { return nil }
        self.init(from: &reader)
        guard reader.isAtEnd else { return nil }
    }

    func write(to writer: inout ByteWriter) {
        for number in [horizon, base, scan] { writer.integer(number) }
        epoch.write(to: &writer)
    }

    init?(from reader: inout ByteReader) {
        guard let horizon = reader.integer(), let base = reader.integer(), let scan = reader.integer(),
            let epoch = Epoch(from: &reader), 0 <= base, base <= horizon
        else { return nil }
        self.init(epoch: epoch, horizon: horizon, base: base, scan: scan)
    }

    /// Refuses a scan whose history this store has lost (``ProblemCode/checkpointExpired``), or whose deletions it does
    /// not keep any more (``ProblemCode/snapshotExpired``): a snapshot shows none, a delta those above its base.
    package func check(in scope: ScopeHistory) throws(Problem) {
        var reader = checkpoint
        if base > 0 { reader.complete = base }
        do throws(Problem) { _ = try reader.resumed(in: scope) } catch {
            throw error.reason == .retention ? Problem(.snapshotExpired, error.detail) : error
        }
    }
}

/// A place in a scan in key order: behind this record.
package struct Cursor: Hashable, Sendable {
    package var entity: String
    package var record: RecordID

    package init(entity: String, record: RecordID) {
        self.entity = entity
        self.record = record
    }

    package func token(in handle: SnapshotHandle, scope: Scope, key: [UInt8]) -> String {
        var writer = ByteWriter()
        writer.integer(handle.horizon)
        write(to: &writer)
        return SealedToken.seal(writer.bytes, .cursor, scope: scope, key: key)
    }

    package init?(token: String, in handle: SnapshotHandle, scope: Scope, key: [UInt8]) {
        guard var reader = SealedToken.open(token, .cursor, scope: scope, key: key), reader.integer() == handle.horizon
        else { return nil }
        self.init(from: &reader)
        guard reader.isAtEnd else { return nil }
    }

    func write(to writer: inout ByteWriter) {
        writer.run(entity.utf8)
        writer.run(record.text.utf8)
    }

    init?(from reader: inout ByteReader) {
        guard let entity = reader.run(), let text = reader.run(),
            let record = RecordID(String(decoding: text, as: UTF8.self))
        else { return nil }
        self.init(entity: String(decoding: entity, as: UTF8.self), record: record)
    }
}
