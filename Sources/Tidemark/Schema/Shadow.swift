import GRDB
import TidemarkWire

/// The last server row known of a record that has edits under way (its columns stand in the shadow table as they were
/// before the first edit).
struct Shadow: Hashable {
    enum State: Int64 {
        /// The server has no such row, as far as is known.
        case absent = 0
        /// `cells` is the server's row.
        case known = 1
        /// Deleted on the server under an edit made here; `cells` is what the edit was made on.
        case deleted = 2
    }

    var state: State
    var cells: [Cell]
    /// The row's version where it is remembered; else the row stands at or below the scope's `complete`.
    var version: Version?
    /// Fields whose edit was made on an older row than this one; the empty name stands for a delete.
    var bases: [String: Version] = [:]
    /// The values of edited fields before their edit, where a later row of the server's has come under the edit.
    var originals: [String: Cell] = [:]
    /// The place among the marks; `nil` where nothing is new since the last sealing.
    var mark: Int64?
    var since: Int64?
    /// The stamp of the last edit.
    var edited: Int64?
    /// In a table whose rows are spread over scopes: the scope whose row this is, or to which it was sent; `nil` where
    /// it was never sent.
    var scope: String?
    /// There too: the scope that has to look at the mark, by name; empty where any of them may.
    var routingScope: String?
    /// Whether the app itself took the row away last. A quarantined row is then not what the app made, even where the
    /// record has edits.
    var isGone = false

    /// By name, the scope that looks after the record; one that its table lies in as a whole is not noted.
    func place(in scope: Scope) -> String { self.scope ?? routingScope ?? scope.name }

    static let deletionBase = ""
    /// The name of a column that is none: see ``seed``.
    static let seedBase = "\u{1}"
    static let seedBases = #"{"\u0001":0}"#
    /// The row as it was when its table was captured for the first time, where the server did not have it then.
    var seed: [Cell]? { state == .absent && bases[Self.seedBase] != nil ? cells : nil }
    /// The name of a column that is none, noted where a record was deleted unseen that the server did not have when it
    /// was asked: nobody knows what stood in the row, and `cells` are NULLs. The delete is sent all the same, for
    /// another device may replay the record to a server that has lost it. A row that is made anew over such a shadow is
    /// an insert (``RecordTable/shadow(_:_:)``).
    static let unknownBase = "\u{2}"
    static let unknownBaseJSON = #""\u0002""#
    /// Whether nobody knows the row that was deleted.
    var isRowUnknown: Bool { bases[Self.unknownBase] != nil }
    /// Whether `cells` is the server's row, and can be put back.
    var isRowKnown: Bool { state == .known && !isRowUnknown }
    /// Once the server has heard of that row.
    var answered: Shadow {
        var shadow = self
        shadow.bases[Self.seedBase] = nil
        return shadow
    }
    /// The stamp of an edit that is older than all.
    static let seedStamp: Int64 = 0
}
