/// The rule that resolved an edit's conflict with somebody else's.
public enum ConflictRule: String, Hashable, Sendable, CaseIterable {
    /// The edit that reached the server later stands.
    case lastWriteWins
    /// The edit that was made later stands.
    case lastEditWins
    /// The app decides.
    case manual
    /// The record, or one that it refers to, was deleted elsewhere and stays so.
    case deleteWins
    /// The record was deleted and edited; it lives.
    case editWins
    /// The field is the server's own; what was set here counts for nothing.
    case serverFields
    /// A comparison found the row other than the server has it, and repaired it.
    case repair
    /// The row was here before its table was captured for the first time; the server's stands.
    case firstCapture
    /// A rule that the operator wrote.
    case serverRule
}
