import Tidemark
import TidemarkServer
import TidemarkWire

/// What the oracle knows of attachments' bytes.
struct OracleFiles {
    /// A blob's place on the server.
    struct Place: Hashable {
        var scope: Scope
        var hash: String
    }

    /// A part's name on the server.
    struct Part: Hashable {
        var place: Place
        var user: Int
    }

    /// A file that only its device may have.
    struct Owed {
        /// When rows there ceased to name it, by the device's clock.
        var unnamedSince: Int64?
        /// Where its app has named it: the device brings it there, and nowhere else.
        var named: Set<Place> = []
    }

    /// All bytes that apps ever added, by their hashes.
    var contents: [String: [UInt8]] = [:]
    /// What each device has added and is to keep until the server has it.
    var owed: [[BlobReference: Owed]]
    /// What was on a device when its file was copied.
    var backups: [[BlobReference: Owed]]
    /// What the server has had in one of its histories.
    var had: Set<Place> = []
    /// What it has now.
    var present: Set<Place> = []
    /// When each of those came, by the world's time, and which went too early by it, since a server's clock had jumped.
    var came: [Place: Int64] = [:]
    var wentEarly: Set<Place> = []
    /// When each of those was sent, asked for or looked for last, by the server's clock, as far as that is known.
    var uses: [Place: Int64] = [:]
    /// When the names in a scope were looked at last.
    var scans: [Scope: Int64] = [:]
    /// What a server that was put back has no more, and the devices that cannot know it: they have heard of nothing
    /// that was lost with it.
    var unknown: [Place: Set<Int>] = [:]
    /// How many bytes of a part have come at most.
    var reach: [Part: Int64] = [:]
    /// Parts of which bytes were changed on their way: now, and ever.
    var spoiled: Set<Part> = []
    var everSpoiled: Set<Part> = []
    /// Whether the last word of the server to a device on a blob was that it is there.
    var told: [Part: Bool] = [:]

    init(devices: Int) {
        owed = Array(repeating: [:], count: devices)
        backups = owed
    }

    /// The store is another one, and may have what was changed on its way at any time.
    mutating func startAnew() {
        (present, scans, spoiled) = ([], [:], everSpoiled)
    }

    mutating func reaches(_ end: Int64, of part: Part) { reach[part] = max(reach[part] ?? 0, end) }
}
