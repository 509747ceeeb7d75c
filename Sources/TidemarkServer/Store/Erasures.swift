/// Counts what an erasure would remove from a scope.
public protocol ErasureReader {
    /// What is kept in the scope under a principal's name, or, with `nil`, all that an erasure of the scope removes.
    func held(by principal: String?) throws -> Erasure
}

/// Erases a scope, or what is kept in it under a principal's name, in steps.
public protocol ErasureWriter: ErasureReader {
    /// Marks the scope as erased since a moment: it has no entities, digests, openings and sizes any more, and its head
    /// is one more, so that whoever watches it looks. Does nothing where it is marked.
    func markErased(at moment: Int64) throws

    /// Removes some of what ``ErasureReader/held(by:)`` counts, at most `limit` of it and, of the scope's rows, few large
    /// ones at once; nothing only where nothing is left. Answers what went.
    func erase(of principal: String?, limit: Int) throws -> Erasure
}
