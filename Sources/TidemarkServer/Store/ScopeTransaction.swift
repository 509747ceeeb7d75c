/// A consistent view of one scope, of all subjects. Valid only inside the closure that it was given to.
public protocol ScopeReader: LogReader, LaneReader, DeviceReader, IDReader, TallyReader, ErasureReader {}

/// The one writer of a scope, for the length of a transaction.
public protocol ScopeWriter: ScopeReader, LogWriter, LaneWriter, DeviceWriter, IDWriter, TallyWriter, ErasureWriter,
    RejectionWriter
{
    /// Whether another write waits for this one to end: then a long one is cut short (`Limits.pushTime`).
    var othersWait: Bool { get }
    /// Whether writes that are done wait for this one, because they share its commit: then it is cut shorter still.
    var holdsUpOthers: Bool { get }
    /// Fields of an entity that only the server's own programs write, beside those that are declared so.
    func serverFields(of entity: String) -> [String]

    /// Runs a part of the transaction that may fail: an error undoes what the part wrote, and only that.
    func attempt<Result>(_ body: () throws -> Result) throws -> Result
}
