/// Reads the engine's notes on what a principal has done lately in a scope.
public protocol TallyReader {
    /// The engine's note on what a principal has deleted of an entity lately, or, of the entity without a name, on what
    /// he has added to the scope, as it was given.
    func tally(by principal: String, of entity: String) throws -> [UInt8]?
}

/// Keeps such notes.
public protocol TallyWriter: TallyReader {
    /// Keeps a note of ``TallyReader/tally(by:of:)``; it may go with devices that were last heard of before its moment.
    func store(tally note: [UInt8], by principal: String, of entity: String, at moment: Int64) throws
}
