public import Foundation
import GRDB
public import TidemarkWire

/// The files of an engine's attachments: what a record's column names by a `BlobReference` (A12).
///
/// ```swift
/// let photo = try await sync.attachments.add(jpeg)
/// try await database.write { db in
///     try db.execute(sql: "UPDATE note SET photo = ? WHERE id = ?", arguments: [photo.description, id])
/// }
/// ```
/// It has no state of its own: any task may use it, and no call waits for the network but ``fetch(_:priority:)`` and
/// ``transfer()``.
public struct Attachments: Sendable {
    private let optionalRunner: AttachmentRunner?

    init(_ runner: AttachmentRunner?) { optionalRunner = runner }

    private var runner: AttachmentRunner {
        get throws {
            if let optionalRunner { return optionalRunner }
            throw SyncError(
                .configurationInvalid, "The engine has no folder for attachments.",
                hint: "Give it `attachments: AttachmentConfiguration(folder: …)`.")
        }
    }

    // MARK: Bytes of this device

    /// Takes in bytes that the app has made, and returns the reference to write into the record's column, in the app's
    /// own transaction. They are on the disk when this returns, and are uploaded once a record names them.
    ///
    /// Bytes that no record names are removed after seven days.
    /// - Throws: ``SyncError``: `configuration_invalid` where the engine has no folder for attachments or the bytes are
    ///   more than an attachment may have, `folder_failed` where they cannot be written, and as
    ///   ``SyncEngine/install()`` does; `CancellationError`, and then nothing is kept.
    public func add(_ data: Data) async throws -> BlobReference {
        let runner = try runner
        var rest = data[...]
        let draft = try await runner.folder.draft {
            defer { rest = rest.dropFirst(BlobFolder.pieceBytes) }
            return Data(rest.prefix(BlobFolder.pieceBytes))
        }
        return try await Self.asked { try await runner.add(draft) }
    }

    /// Copies a file's bytes in, some at a time, and hashes them meanwhile; the file itself stays where it is.
    ///
    /// - Throws: as ``add(_:)`` does; `folder_failed` where the file cannot be read.
    public func add(contentsOf url: URL) async throws -> BlobReference {
        let runner = try runner
        let file = try runner.folder.failing { try FileHandle(forReadingFrom: url) }
        defer { try? file.close() }
        let draft = try await runner.folder.draft { try file.read(upToCount: BlobFolder.pieceBytes) ?? Data() }
        return try await Self.asked { try await runner.add(draft) }
    }

    // MARK: Reading

    /// The file, where it is on this device; no file is read and no request is sent. What is there was verified. It
    /// counts as a use, and the file may make room for others later: read it soon, or ``pin(_:)`` it.
    public func url(for reference: BlobReference) -> URL? {
        guard let runner = optionalRunner, runner.folder.contains(reference) else { return nil }
        let now = wallClockMilliseconds()
        runner.uses.withLock { $0[reference] = now }
        return runner.folder.url(of: reference)
    }

    /// The bytes, where they are on this device.
    ///
    /// - Throws: ``SyncError`` `folder_failed` where the file cannot be read.
    public func data(for reference: BlobReference) throws -> Data? {
        guard let url = url(for: reference) else { return nil }
        return try runner.folder.failing { try Data(contentsOf: url) }
    }

    /// Fetches the file where it is not here, before others that wait, and returns where it is.
    ///
    /// It waits for one attempt, in each scope that names it where the first does not have it. Where none has, the file
    /// is fetched later by itself; ``state(of:)`` and the view `tidemark_attachment` say when.
    /// - Throws: ``SyncError``: `configuration_invalid` where the engine has no folder for attachments;
    ///   `attachment_unavailable` where no record here names it, no device has uploaded it yet, or it has failed; what
    ///   stands in the way of asking the server, such as `network_unavailable`. `CancellationError`.
    public func fetch(_ reference: BlobReference, priority: AttachmentPriority = .high) async throws -> URL {
        if let url = url(for: reference) { return url }
        let runner = try runner
        return try await Self.asked {
            try await runner.fetch(reference, priority: Int64(priority.rawValue))
            guard let url = url(for: reference) else { throw AttachmentRunner.unavailable("It is not here.") }
            return url
        }
    }

    /// How the bytes stand; `nil` where no record here names them. Of several scopes that name them, the first by name.
    ///
    /// - Throws: ``SyncError``: `configuration_invalid` where the engine has no folder for attachments,
    ///   `database_failed` where the file cannot be read.
    public func state(of reference: BlobReference) async throws -> AttachmentState? {
        let runner = try runner
        return try await runner.file.asked(to: .read) { db in
            guard try LibrarySchema.isInstalled(db) else { return nil }
            guard let found = try Blob.state(db, of: reference) else { return nil }
            return AttachmentState(state: found.state, bytes: found.bytes, reason: found.reason)
        }
    }

    /// How much waits to travel, as it changes, beginning with the present. A slow reader misses the middle, never the
    /// latest.
    public var progress: AsyncStream<AttachmentProgress> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            guard let runner = optionalRunner else { return continuation.finish() }
            Task {
                await runner.board.add(continuation)
                await runner.publish()
            }
        }
    }

    // MARK: Steering

    /// Uploads and fetches all that can travel now, also where the engine does not run, and returns when nothing more
    /// can: for the time that a system grants in the background.
    ///
    /// - Throws: ``SyncError``: `configuration_invalid` where the engine has no folder for attachments; that of the
    ///   last file that failed; and as ``SyncEngine/install()`` does; `CancellationError`.
    public func transfer() async throws {
        let runner = try runner
        try await Self.asked { try await runner.attempt(nil) }
    }

    /// Keeps a file on this device, whatever room there is, and fetches it where it is not here. It holds for as
    /// long as records name it.
    ///
    /// - Throws: as ``state(of:)`` does.
    public func pin(_ reference: BlobReference) async throws { try await change(reference) { $0.isPinned = true } }

    /// Lets a file make room for others again.
    ///
    /// - Throws: as ``state(of:)`` does.
    public func unpin(_ reference: BlobReference) async throws { try await change(reference) { $0.isPinned = false } }

    /// Tries a file again that has failed, at once.
    ///
    /// - Throws: as ``state(of:)`` does.
    public func retry(_ reference: BlobReference) async throws {
        try await change(reference) { blob in
            blob.clear()
            if blob.wanted == .not { blob.wanted = .asked }
        }
    }

    /// Removes a file from this device that the server has, and that is not pinned. One whose records' edits all wait
    /// to be taken stays: the server may collect what none of its records names.
    ///
    /// - Returns: whether it did.
    /// - Throws: as ``state(of:)`` and ``SyncEngine/install()`` do; `folder_failed` where it cannot be removed.
    @discardableResult
    public func evict(_ reference: BlobReference) async throws -> Bool {
        let runner = try runner
        return try await Self.asked { try await runner.evict(reference) }
    }

    private func change(_ reference: BlobReference, _ change: @escaping @Sendable (inout Blob) -> Void) async throws {
        let runner = try runner
        try await Self.asked { try await runner.change(reference, change) }
    }

    private static func asked<Result>(_ body: () async throws -> Result) async throws -> Result {
        do { return try await body() } catch let error as DatabaseError { throw SyncError(error) }
    }
}

extension AttachmentRunner {
    func change(_ reference: BlobReference, _ change: @escaping @Sendable (inout Blob) -> Void) async throws {
        try await digest()
        try await write { db, now in _ = try Blob.change(db, reference, now: now, change) }
        signalWork()
    }

    func fetch(_ reference: BlobReference, priority: Int64) async throws {
        try await digest()
        let folder = folder
        let isNamed = try await write { db, now -> Bool? in
            // It has come just now.
            if folder.contains(reference) { return nil }
            // The app has removed the file itself, or put another folder in its place.
            if try BlobFiles.isHere(db, reference) { try BlobFiles.remove(db, reference, now: now) }
            return try Blob.change(db, reference, now: now) { blob in
                blob.clear()
                (blob.wanted, blob.priority) = (.asked, max(blob.priority, priority))
            }
        }
        guard let isNamed else { return }
        guard isNamed else { throw Self.unavailable("No record on this device names it.") }
        try await attempt(reference)
    }
}
