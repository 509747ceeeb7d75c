import TidemarkServer
import TidemarkWire

/// All that one scope's log ever said in one history of the server: the store sweeps its own, this one does not.
struct OracleHistory {
    struct Row: Hashable {
        var key: OracleKey
        var kind: RowKind
        /// `nil` for a tombstone, and for a row of no table.
        var cells: [Value?]?
        var payload: [UInt8]?
        /// The world's time when it was read.
        var time: Int64 = 0
    }

    /// The row of version 1 first.
    private(set) var rows: [Row] = []
    private(set) var versions: [OracleKey: [Version]] = [:]

    var head: Version { Version(rows.count) }

    subscript(version: Version) -> Row { rows[Int(version) - 1] }

    mutating func append(_ row: Row) {
        rows.append(row)
        if row.kind != .idmap { versions[row.key, default: []].append(head) }
    }

    /// The history of a store that went back to an earlier version.
    func prefix(through version: Version) -> OracleHistory {
        var history = OracleHistory()
        for row in rows.prefix(Int(version)) { history.append(row) }
        return history
    }

    func newest(_ key: OracleKey) -> [Value?]? { versions[key]?.last.flatMap { self[$0].cells } }

    /// The last row that the record had before it was deleted, or has.
    func newestLive(_ key: OracleKey) -> [Value?]? {
        versions[key]?.reversed().lazy.compactMap { self[$0].cells }.first
    }

    /// The version of the first row of a record that was the record's state at some version from `lower` on and passes
    /// the test; 0 stands for the time before its first.
    func first(_ key: OracleKey, from lower: Version, where test: ([Value?]?) -> Bool) -> Version? {
        let versions = versions[key] ?? []
        let next = versions.partitionPoint { $0 <= lower }
        if next == 0, test(nil) { return 0 }
        for version in versions[max(0, next - 1)...] where test(self[version].cells) { return version }
        return nil
    }

    /// The first row of a record above a version that passes the test.
    func row(_ key: OracleKey, above version: Version, where test: ([Value?]?) -> Bool) -> Version? {
        (versions[key] ?? []).first { $0 > version && test(self[$0].cells) }
    }
}

extension [Value?]? {
    /// Whether a row on a device may be this one.
    func fits(_ cells: [Value]?) -> Bool {
        guard let row = self, let cells else { return self == nil && cells == nil }
        return row.count == cells.count && zip(row, cells).allSatisfy { $0 == nil || $0 == $1 || $1 == .absent }
    }
}

/// One scope's histories: a server that is restored from a backup begins another one, which shares its beginning.
struct OracleScope {
    /// The present one last.
    private(set) var histories = [OracleHistory()]
    /// How far each history is the same as the one after it.
    private(set) var forks: [Version] = []
    /// The openings of the store that wrote in histories before the present one.
    private var former: Set<Int64> = []
    private var openings: Set<Int64> = []
    /// The history of a copy of the server, and how far it is the same as the present one.
    private var copy: (history: OracleHistory, fork: Version)?

    var current: OracleHistory { histories[histories.count - 1] }
    var newest: Int { histories.count - 1 }

    mutating func append(_ row: OracleHistory.Row) { histories[newest].append(row) }

    mutating func note(_ incarnations: [(id: Int64, start: Version)]) {
        for incarnation in incarnations { openings.insert(incarnation.id) }
    }

    mutating func goBack(to version: Version) {
        begin(current.prefix(through: version), sharing: version)
        if let fork = copy?.fork { copy?.fork = min(fork, version) }
    }

    /// The server is copied.
    mutating func clone() { copy = (current, current.head) }

    /// The copy is in the place of what it was made of, or the other way around.
    ///
    /// - Returns: how far the two are the same; `nil` where neither has gone on.
    mutating func exchange() -> Version? {
        guard let (next, fork) = copy else { return nil }
        let last = current
        copy?.history = last
        guard max(next.head, last.head) > fork else { return nil }
        begin(next, sharing: fork)
        return fork
    }

    private mutating func begin(_ history: OracleHistory, sharing version: Version) {
        former = openings
        forks.append(version)
        histories.append(history)
    }

    /// Whether the record was ever deleted, in any history.
    func hasTombstone(of key: OracleKey) -> Bool {
        histories.contains { history in history.versions[key]?.contains { history[$0].kind == .delete } ?? false }
    }

    /// Whether an opening wrote in no other history than the present one.
    func isOfPresent(_ opening: Int64) -> Bool {
        newest == 0 || openings.contains(opening) && !former.contains(opening)
    }

    /// A version of one history, or the last that a later history shares with it.
    func clip(_ version: Version, of history: Int, to later: Int) -> Version {
        guard history < later else { return version }
        return min(version, forks[history..<later].min() ?? version)
    }
}
