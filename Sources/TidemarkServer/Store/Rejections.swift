import TidemarkCore
public import TidemarkWire

/// Reads the list of refused edits that an operator looks through, and takes entries off it. It is called from any
/// task, and throws as ``HistoryStore`` does.
public protocol RejectionStore: Sendable {
    /// The refused edits that are kept, of one scope or of all, newest first; with `id`, the one of this number.
    ///
    /// - Throws: ``StoreUnavailable`` for what passes by itself; `CancellationError` in a cancelled task; an error of
    ///   the store's own for the rest.
    func rejections(in scope: Scope?, id: Int64?, limit: Int) async throws -> [StoredRejection]

    /// Takes a refused edit off the list; `false` where it is not there (any more).
    ///
    /// - Throws: ``StoreUnavailable`` for what passes by itself; `CancellationError` in a cancelled task; an error of
    ///   the store's own for the rest.
    func discardRejection(_ id: Int64) async throws -> Bool
}

/// Puts refused edits of one scope on the operator's list. It is used on one thread, as ``ScopeWriter`` is.
public protocol RejectionWriter {
    /// Keeps a refused edit for the operator, and of the scope's about the `limit` newest: nobody pushes out another's.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func keep(_ rejection: StoredRejection, limit: Int) throws
}

/// A refused edit on its way into a store, and back.
public struct StoredRejection: Hashable, Sendable {
    /// Its number, which the store gives it.
    public var id: Int64
    /// Where the record belongs.
    public var scope: Scope
    /// The record's entity.
    public var entity: String
    /// The record's id.
    public var record: String
    /// Whether the record was to be deleted.
    public var isDelete: Bool
    /// The fields as canonical JSON, where they are kept.
    public var fields: [UInt8]?
    /// Whose it is.
    public var lane: LaneName
    /// Its number in the lane.
    public var number: Int64
    /// Why, for programs.
    public var code: String
    /// Why, for people.
    public var detail: String
    /// When, in milliseconds since 1970.
    public var time: Int64

    /// Bytes of fields that are kept with a refusal.
    static let fieldLimit = 16 << 10

    /// Makes a rejection from its parts.
    public init(
        id: Int64 = 0, scope: Scope, entity: String, record: String, isDelete: Bool, fields: [UInt8]?, lane: LaneName,
        number: Int64, code: String, detail: String, time: Int64
    ) {
        self.id = id
        self.scope = scope
        self.entity = entity
        self.record = record
        self.isDelete = isDelete
        self.fields = fields
        self.lane = lane
        self.number = number
        self.code = code
        self.detail = detail
        self.time = time
    }

    init(_ operation: Operation, _ refusal: Verdict.Refusal, scope: Scope, lane: LaneName, number: Int64, time: Int64) {
        let bytes = operation.fields.bytes
        self.init(
            scope: scope, entity: operation.entity, record: (operation.id ?? operation.tempID)?.text ?? "",
            isDelete: operation.kind == .delete, fields: bytes.count <= Self.fieldLimit ? bytes : nil, lane: lane,
            number: number, code: refusal.code, detail: refusal.detail, time: time)
    }
}
