/// A consistent view of one scope, of all subjects. Valid only inside the closure that it was given to, on the one
/// thread that runs it.
///
/// Its functions throw the store's own errors, and `CancellationError` in a cancelled task. The closure lets them pass:
/// ``ChangeStore/read(_:for:_:)`` and ``ChangeStore/write(_:for:_:)`` make a ``StoreUnavailable`` of what passes by
/// itself.
public protocol ScopeReader: LogReader, LaneReader, DeviceReader, IDReader, TallyReader, ErasureReader {}

/// The one writer of a scope, for the length of a transaction, on the one thread that runs it.
///
/// A store may send writes off without waiting for their answers: then a later call throws the error of an earlier one,
/// or ``ChangeStore/write(_:for:_:)`` does. An error of the store's own may end the whole transaction, also inside of
/// ``attempt(_:)``: then every later call throws it.
public protocol ScopeWriter: ScopeReader, LogWriter, LaneWriter, DeviceWriter, IDWriter, TallyWriter, ErasureWriter,
    RejectionWriter
{
    /// Whether another write waits for this one to end: then a long one is cut short (`Limits.pushTime`).
    var othersWait: Bool { get }
    /// Whether writes that are done wait for this one, because they share its commit: then it is cut shorter still.
    var delaysOthers: Bool { get }
    /// Fields of an entity that only the server's own programs write, beside those that are declared so.
    func serverFields(of entity: String) -> [String]

    /// Runs a part of the transaction that may fail: an error undoes what the part wrote, and only that.
    ///
    /// - Throws: what the body throws, or an error of the store's own, as ``ScopeWriter`` says.
    func attempt<Result>(_ body: () throws -> Result) throws -> Result
}
