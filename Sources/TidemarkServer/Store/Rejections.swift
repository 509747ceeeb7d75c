public import TidemarkWire

/// Reads the list of refused edits that an operator looks through, and takes entries off it.
public protocol RejectionStore: Sendable {
    /// The refused edits that are kept, of one scope or of all, newest first; with `id`, the one of this number.
    func rejections(in scope: Scope?, id: Int64?, limit: Int) async throws -> [StoredRejection]

    /// Takes a refused edit off the list; `false` where it is not there (any more).
    func discardRejection(_ id: Int64) async throws -> Bool
}

/// Puts refused edits of one scope on the operator's list.
public protocol RejectionWriter {
    /// Keeps a refused edit for the operator, and of the scope's about the `limit` newest: nobody pushes out another's.
    func keep(_ rejection: StoredRejection, limit: Int) throws
}
