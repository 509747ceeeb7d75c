public import TidemarkWire

/// Reads what the temporary ids of devices stand for. It is used on one thread, as ``ScopeReader`` is.
public protocol IDReader {
    /// The id that a device's temporary one stands for, in whatever scope it was assigned; `nil` for none.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func id(for name: TemporaryName) throws -> RecordID?

    /// Whether this scope or another one assigned the id to a temporary one, of whatever device; `nil`: none did.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func assignment(of record: RecordID, entity: String) throws -> AssignmentPlace?
}

/// Keeps what temporary ids stand for. It is used on one thread, as ``ScopeWriter`` is.
public protocol IDWriter: IDReader {
    /// Remembers for a year at least what a temporary id stands for: as long as it may be named again. It was assigned
    /// in this scope.
    ///
    /// - Throws: an error of the store's own, also where the temporary id stands for something already, as
    ///   ``ScopeWriter`` says.
    func store(_ id: RecordID, for name: TemporaryName, at moment: Int64) throws
}
