public import TidemarkWire

/// A store's knowledge of a scope apart from its rows.
public struct ScopeState: Hashable, Sendable {
    /// The newest version.
    public var head: Version = 0
    /// When that was committed, in milliseconds since 1970: every later row is later.
    public var lastTime: Int64 = 0
    /// Rows superseded at or below this version are gone.
    public var sweepFloor: Version = 0
    /// Tombstones at or below this version are gone.
    public var retentionFloor: Version = 0
    /// The openings of the store that wrote in this scope, oldest first: random id, and the head that each found.
    public var incarnations: [(id: Int64, start: Version)] = []
    /// The entities of which rows were ever appended, each as its first row spelled it.
    public var entities = EntityNames()
    /// The size of all that the scope keeps, in step with its rows.
    public var size = ScopeSize()
    /// The rows that others have taken the place of and that are still kept, for readers in mid-scan.
    public var superseded = ScopeSize()

    /// When the scope was erased, in milliseconds since 1970; `nil`: it was not.
    public var erasedAt: Int64?

    /// A scope that nobody wrote to.
    public init() {}

    /// The state of a scope that was erased.
    public static func erased(at moment: Int64, head: Version) -> ScopeState {
        var state = ScopeState()
        (state.head, state.erasedAt) = (head, moment)
        return state
    }

    /// Compares all members.
    public static func == (lhs: ScopeState, rhs: ScopeState) -> Bool {
        lhs.head == rhs.head && lhs.lastTime == rhs.lastTime && lhs.sweepFloor == rhs.sweepFloor
            && lhs.retentionFloor == rhs.retentionFloor && lhs.incarnations.elementsEqual(rhs.incarnations) { $0 == $1 }
            && lhs.entities == rhs.entities && lhs.size == rhs.size && lhs.superseded == rhs.superseded
            && lhs.erasedAt == rhs.erasedAt
    }

    /// Hashes the numbers.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(head)
        hasher.combine(sweepFloor)
        hasher.combine(retentionFloor)
    }
}
