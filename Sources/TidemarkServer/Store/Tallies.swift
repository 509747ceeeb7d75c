/// Reads the engine's notes on what a principal has done lately in a scope. It is used on one thread, as
/// ``ScopeReader`` is.
public protocol TallyReader {
    /// The engine's note on what a principal has deleted of an entity lately, or, of the entity without a name, on what
    /// he has added to the scope, as it was given.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func tally(by principal: String, of entity: String) throws -> [UInt8]?
}

/// Keeps such notes. It is used on one thread, as ``ScopeWriter`` is.
public protocol TallyWriter: TallyReader {
    /// Keeps a note of ``TallyReader/tally(by:of:)``; it may go with devices that were last heard of before its moment.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func store(tally note: [UInt8], by principal: String, of entity: String, at moment: Int64) throws
}
