public import TidemarkWire

/// A store whose records may also stand in tables of the operator's own, which other programs write to. It is called
/// from any task, as every store is.
public protocol TableStore: ChangeStore {
    /// The names of at most `limit` scopes, behind one and in the order of their bytes, in which other programs have
    /// written what the log does not hold yet.
    ///
    /// - Throws: ``StoreUnavailable`` for what passes by itself; `CancellationError` in a cancelled task; an error of
    ///   the store's own for the rest.
    func capturedScopes(after scope: Scope?, limit: Int) async throws -> [Scope]
}

/// The one writer of a scope whose records may also stand in tables of the operator's own. It is used on one thread, as
/// ``ScopeWriter`` is.
///
/// Each appended row goes into the table too, in the same transaction; ``LogWriter/append(_:at:)`` throws a
/// ``RowRefusal`` where the table does not take it, and nothing of it is done then.
public protocol TableScopeWriter: ScopeWriter {
    /// Whether records of an entity stand in such a table. Their ids are not the server's to assign.
    func hasTable(of entity: String) -> Bool

    /// Takes at most `limit` notes off the list of what others have written, and gives the state that each record has
    /// by now, once. What `take` appends is not written to the table. Answers how many notes there were.
    ///
    /// - Parameters:
    ///   - limit: how many notes, at the most.
    ///   - recordBytes: how large a record may be; a row that holds more need not be read.
    ///   - take: what is done with each record.
    /// - Throws: what `take` throws, or an error of the store's own, as ``ScopeWriter`` says.
    func drainCapture(limit: Int, recordBytes: Int, _ take: (CapturedRecord) throws -> Void) throws -> Int

    /// Runs a body whose rows go into their tables together, behind it. Where a table does not take one of them, all is
    /// undone and the body runs again, so that each row is refused for itself.
    ///
    /// - Parameters:
    ///   - records: the records that the body will write to, as far as they are known.
    ///   - body: the writes.
    /// - Throws: what the body throws, or an error of the store's own, as ``ScopeWriter`` says.
    func together<Result>(_ records: [(entity: String, id: RecordID)], _ body: () throws -> Result) throws -> Result

    /// Runs a body whose rows are a device's: they refer to rows of this scope, and of those others that the caller may
    /// read, and to no others of tables that have scopes. Outside of it rows are the operator's, and refer to any.
    ///
    /// - Parameters:
    ///   - grants: whether the caller may read another scope, as far as that was asked for.
    ///   - body: what writes the rows.
    /// - Throws: what the body throws; ``GrantsWanted`` where the grants of another scope decide and are not there.
    func withReferences<Result>(grants: [Scope: Bool], _ body: () throws -> Result) throws -> Result
}

/// Thrown by a store that has to know whether the caller may read other scopes, since his rows refer to tables all of
/// whose rows are in one of them. Nothing is done then; the same comes again once that is known.
public struct GrantsWanted: Error, Hashable, Sendable {
    /// The scopes.
    public var scopes: [Scope]

    /// Names the scopes.
    public init(scopes: [Scope]) { self.scopes = scopes }
}

/// A record that another program has written, as it stands in its table.
public struct CapturedRecord: Hashable, Sendable {
    /// The record's entity.
    public var entity: String
    /// Its key as the table has it.
    public var key: String
    /// Its fields as canonical JSON; `nil` where it is not in this scope (any more).
    public var fields: [UInt8]?
    /// Whether the row is there, but in another scope.
    public var isElsewhere: Bool
    /// Whether the row was inserted, or found when its table was attached; an event comes once, whatever becomes of it.
    public var isNew = false
    /// Why the row is here and has no fields; `nil` where it has, or is not here.
    public var unsendable: Unsendable?

    /// The reason for which a row cannot travel.
    public enum Unsendable: Hashable, Sendable {
        /// It is so large that it was not read.
        case tooLarge
        /// A column's value is one that neither JSON nor SQLite has, such as NaN.
        case value(column: String)
    }

    /// Makes a record from its parts.
    public init(entity: String, key: String, fields: [UInt8]?, isElsewhere: Bool) {
        self.entity = entity
        self.key = key
        self.fields = fields
        self.isElsewhere = isElsewhere
    }
}

/// Thrown by a store where the operator's own table does not take a row: its constraints, its triggers, its columns.
/// The edit is refused for good, and its author's device keeps it.
public struct RowRefusal: Error, Hashable, Sendable {
    /// For programs; one of the protocol's list.
    public var code: String
    /// For people: what is wrong, without row data.
    public var detail: String
    /// The remedy, for people.
    public var hint: String

    /// Makes a refusal from its parts.
    public init(code: String, detail: String, hint: String) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }
}

extension ScopeWriter {
    /// None: only a store whose rows are in tables of the operator's own knows more than is declared.
    public func serverFields(of entity: String) -> [String] { [] }
}
