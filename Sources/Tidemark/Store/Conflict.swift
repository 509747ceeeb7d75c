public import Foundation
public import TidemarkWire

/// An edit of this device that met somebody else's: what was there before, what each side set, and what became of it.
///
/// Most are resolved by the time they are listed, by the policy that the operator declared. Those of an entity whose
/// policy is `manual` are open, and those of a write that no trigger saw (``SyncEngine/inferredEdits()``): they wait
/// for ``SyncEngine/resolve(_:with:)``, or for the engine's conflict handler.
public struct Conflict: Hashable, Sendable, Identifiable {
    /// A column, as far as each side's value is known.
    public struct Field: Hashable, Sendable {
        /// The column.
        public var name: String
        /// The value that the edit was made on; `nil` where the record was new, or this is not known any more.
        public var base: Value?
        /// The value set here; `nil` where the record was deleted here.
        public var mine: Value?
        /// The value set elsewhere; `nil` where the record was deleted there.
        public var theirs: Value?
        /// The value that stands; `nil` while the conflict is open, and where the record is deleted.
        public var result: Value?

        /// Makes a field from its values.
        public init(name: String, base: Value? = nil, mine: Value?, theirs: Value?, result: Value?) {
            self.name = name
            self.base = base
            self.mine = mine
            self.theirs = theirs
            self.result = result
        }
    }

    /// A decision of an app or its user.
    public enum Resolution: Hashable, Sendable {
        /// The values set here are written again, as a new edit on the record as it stands now; a column that was
        /// edited here since keeps that edit. Of a resolved conflict, that replays a lost edit.
        case keepMine
        /// The values set elsewhere stand. Of a resolved conflict that went to this device, they are written again.
        case takeTheirs
        /// These values are written.
        case merge([String: Value])
    }

    /// The place in the list.
    public var id: Int64
    /// Where the record belongs.
    public var scope: Scope
    /// The table's name.
    public var entity: String
    /// The record's id on the wire.
    public var record: String
    /// How it was resolved, or will be.
    public var rule: ConflictRule
    /// The columns that both sides have touched; all columns of an edit that met a delete, or that waits.
    public var fields: [Field]
    /// Whether the record was deleted here.
    public var isDelete: Bool
    /// Whether the record was deleted elsewhere.
    public var isDeletedElsewhere: Bool
    /// Whether it waits for a decision.
    public var isOpen: Bool
    /// The version of their change, where it is known.
    public var version: Version?
    /// When the edit was first made here, by this device's clock, where it is known.
    public var editedAt: Date?
    /// When their change was committed, by the server's clock, where it is known.
    public var theirsAt: Date?
    /// When it was noticed here, by this device's clock.
    public var noticedAt: Date

    /// The whole row as it stood here, where it may have to be made anew.
    var whole: [String: Value]?
    /// The operation that is kept with it in the outbox.
    var operation: Int64?

    /// Makes a conflict, for previews and tests; the engine's own are those of ``SyncEngine/conflicts()``.
    public init(
        id: Int64, scope: Scope, entity: String, record: String, rule: ConflictRule, fields: [Field],
        isDelete: Bool = false, isDeletedElsewhere: Bool = false, isOpen: Bool = false, version: Version? = nil,
        editedAt: Date? = nil, theirsAt: Date? = nil, noticedAt: Date
    ) {
        self.id = id
        self.scope = scope
        self.entity = entity
        self.record = record
        self.rule = rule
        self.fields = fields
        self.isDelete = isDelete
        self.isDeletedElsewhere = isDeletedElsewhere
        self.isOpen = isOpen
        self.version = version
        self.editedAt = editedAt
        self.theirsAt = theirsAt
        self.noticedAt = noticedAt
    }

    /// The column of that name.
    public subscript(_ field: String) -> Field? { fields.first { $0.name == field } }
}

/// Decides an open conflict: one of an entity whose policy is `manual`, or of a write that no trigger saw. `nil` leaves
/// it in the list of conflicts.
///
/// It is asked once for each conflict in the life of an engine, and again where its answer could not be written: on no
/// actor unless the closure names one, outside any transaction, and the conflict's scope syncs on when it has answered.
/// A question to the user is better put by returning `nil` and calling ``SyncEngine/resolve(_:with:)`` later. One that
/// throws leaves the conflict in the list.
public typealias ConflictHandler = @Sendable (Conflict) async throws -> Conflict.Resolution?
