import TidemarkServer

/// All that a store in memory holds: a value, so that a copy is a view, and a backup.
struct MemoryLog: Sendable {
    /// In the order in which they were first written to.
    var scopes: [ScopeLog] = []
    /// Where each scope stands in `scopes`.
    var places: [Scope: Int] = [:]
    /// What devices' temporary ids stand for.
    var aliases: [TemporaryName: Alias] = [:]
    /// Oldest first.
    var rejections: [StoredRejection] = []
    /// The number of the last refused edit that was kept; none comes twice.
    var lastRejection: Int64 = 0
    var ageClock: Int64?
    /// Rows and lanes that were ever made: the order in which they were.
    var made = 0
    var blobs = BlobLog()

    struct Alias: Sendable {
        let record: RecordID
        let scope: Scope
        let made: Int64
    }

    func knows(incarnation: Int64) -> Bool {
        scopes.contains { $0.state.incarnations.contains { $0.id == incarnation } }
    }
}

/// One scope of a store in memory.
struct ScopeLog: Sendable {
    let name: Scope
    var state = ScopeState()
    var rows = ScopeRows()
    var digests: [[UInt8]: [UInt8]] = [:]
    var devices: [DeviceName: DeviceStanding] = [:]
    /// What devices have told of themselves, and when.
    var reports: [DeviceName: (report: DeviceReport, moment: Int64)] = [:]
    /// What was deleted lately of entities that have a brake, by the bytes of who did and of the entity's name; what
    /// each caller has added lately, by an empty name.
    var deletes: [[[UInt8]]: (note: [UInt8], moment: Int64)] = [:]
    var lanes: [LaneName: Lane] = [:]

    init(_ name: Scope) { self.name = name }

    struct Lane: Sendable {
        /// Its place among all lanes in the order in which they were made.
        let place: Int
        var number: Int64
        /// When it was last used, in milliseconds since 1970.
        var seen: Int64
        var verdicts: [Int64: StoredVerdict] = [:]
    }
}
