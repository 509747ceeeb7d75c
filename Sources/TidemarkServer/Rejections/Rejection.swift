public import Foundation
import TidemarkCore
public import TidemarkWire

/// An edit that the server refused, as it keeps it for its operator. Its author's device keeps the edit too.
public struct Rejection: Hashable, Sendable, Identifiable {
    /// Its number in the list; none comes twice.
    public var id: Int64
    /// Where the record belongs.
    public var scope: Scope
    /// The record's entity.
    public var entity: String
    /// The record's id, or the temporary one that the device gave it.
    public var record: String
    /// Whether the record was to be deleted.
    public var isDelete: Bool
    /// The fields as they were sent; `nil` where they took more than ``fieldLimit`` bytes.
    public var fields: [String: Value]?
    /// The token's `sub`.
    public var principal: String
    /// The device.
    public var client: String
    /// The operation's lane.
    public var lane: String
    /// The operation's number in its lane.
    public var number: Int64
    /// Why, for programs.
    public var code: String
    /// Why, for people.
    public var detail: String
    /// When.
    public var rejectedAt: Date

    /// Makes a rejection from its parts, for previews and tests.
    public init(
        id: Int64, scope: Scope, entity: String, record: String, isDelete: Bool = false, fields: [String: Value]? = nil,
        principal: String, client: String, lane: String, number: Int64, code: String, detail: String, rejectedAt: Date
    ) {
        self.id = id
        self.scope = scope
        self.entity = entity
        self.record = record
        self.isDelete = isDelete
        self.fields = fields
        self.principal = principal
        self.client = client
        self.lane = lane
        self.number = number
        self.code = code
        self.detail = detail
        self.rejectedAt = rejectedAt
    }

    /// Bytes of fields that are kept with a rejection.
    public static let fieldLimit = StoredRejection.fieldLimit
}

extension Rejection: CustomStringConvertible {
    /// A sentence for a log, without the fields: which edit of which device was refused, and why. The reason may be the
    /// text of a rule or of a table's trigger, which says what its author wrote.
    public var description: String {
        let edit = "\(isDelete ? "Delete" : "Edit") of \(entity) \(record) by \(principal) on \(client) in \(scope)"
        return "\(edit) was refused: \(detail) (\(code))".printable
    }
}

extension SyncServer {
    /// The edits that were refused lately, newest first: for the operator, who may find a rule too strict or a device
    /// out of step. Each scope's list is bounded (``Configuration/rejectionLimit``) and never in a log, since it holds
    /// data.
    ///
    /// - Throws: errors of the store.
    public nonisolated(nonsending) func rejections(in scope: Scope? = nil, limit: Int = 100) async throws -> [Rejection]
    {
        try await store.rejections(in: scope, id: nil, limit: max(0, limit)).map(Rejection.init)
    }

    /// Takes a refused edit off the list, once the operator has seen to it. Its author's device keeps the edit.
    ///
    /// - Parameter id: its ``Rejection/id``.
    /// - Returns: whether it was on the list.
    /// - Throws: errors of the store.
    @discardableResult
    public nonisolated(nonsending) func discardRejection(_ id: Int64) async throws -> Bool {
        try await store.discardRejection(id)
    }
}

extension SyncServer {
    /// Makes a refused edit after all, with `changes` on top, as ``commit(to:_:)`` does it: the caller counts as a
    /// service, and every device hears of it. The edit leaves the list; its author's device keeps its own entry.
    ///
    /// ```swift
    /// for rejection in try await server.rejections() where rejection.code == "title_missing" {
    ///     try await server.retryRejection(rejection.id, changing: ["title": "Untitled"])
    /// }
    /// ```
    /// - Parameters:
    ///   - id: its ``Rejection/id``.
    ///   - changes: fields that take other values than were sent.
    /// - Returns: whether it was on the list.
    /// - Throws: ``CommitError`` where it cannot be made: its fields were too large to be kept, its record has only a
    ///   temporary id, or a rule that includes commits refuses it still. It stays on the list then. Errors of the store
    ///   pass through.
    @discardableResult
    public nonisolated(nonsending) func retryRejection(
        _ id: Int64, changing changes: [String: Value] = [:]
    ) async throws -> Bool {
        guard let rejection = try await store.rejections(in: nil, id: id, limit: 1).first.map(Rejection.init) else {
            return false
        }
        guard let record = RecordID(rejection.record), !TemporaryShape.matches(rejection.record) else {
            throw CommitError(
                code: RejectionCode.temporaryIDRefused,
                detail: "The record has no id but its device's temporary one; the device has to send it again.")
        }
        guard let fields = rejection.fields else {
            throw CommitError(
                code: RejectionCode.recordTooLarge,
                detail: "Fields of more than \(Rejection.fieldLimit) bytes were not kept; the device has them.")
        }
        try await commit(to: rejection.scope) { changeset in
            if rejection.isDelete {
                changeset.delete(rejection.entity, id: record)
            } else {
                changeset.upsert(rejection.entity, id: record, fields.merging(changes) { $1 })
            }
        }
        return try await discardRejection(id)
    }
}

extension Rejection {
    fileprivate init(_ stored: StoredRejection) {
        self.init(
            id: stored.id, scope: stored.scope, entity: stored.entity, record: stored.record,
            isDelete: stored.isDelete, fields: stored.fields.flatMap { try? DataObject(stored: $0).values },
            principal: stored.lane.principal, client: stored.lane.client, lane: stored.lane.lane,
            number: stored.number, code: stored.code, detail: stored.detail, rejectedAt: Date(milliseconds: stored.time)
        )
    }
}
