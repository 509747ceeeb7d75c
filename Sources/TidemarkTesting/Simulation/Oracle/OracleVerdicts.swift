import TidemarkServer
import TidemarkWire

/// What the server has said of operations.
struct OracleVerdicts {
    /// Whose operation wrote a version, and when.
    struct Author {
        var device: Int
        var lane: String
        var time: Int64
        /// What the edit set, to another value or to the same.
        var fields: Set<String>
    }

    /// That an edit met somebody else's: to which operation it was said, and when.
    struct Telling: Hashable {
        var key: OracleKey
        var lane: String
        var number: Int
        var time: Int64
    }

    var authors: [Scope: [Version: Author]] = [:]
    /// Where the logs ended before the last request was answered: what is below was written by others.
    var heads: [Scope: Version] = [:]
    /// Per device, what it was told of edits that met somebody else's.
    var told: [Int: Set<Telling>] = [:]
    /// Records of which an edit was refused: what refers to one that never came to be goes with it.
    var refused: Set<OracleKey> = []
    /// Versions that came with one group, which nobody may stop within.
    var groups: [Scope: [ClosedRange<Version>]] = [:]
    /// Records of groups that no request could hold.
    var tooLarge: Set<OracleKey> = []
    /// When an act was done.
    var times: [Int: Int64] = [:]
}

/// One operation of a request, and what was answered to it, as JSON.
struct OracleVerdict {
    let device: Int
    let scope: Scope
    let lane: String
    let number: Int
    let key: OracleKey
    let group: String?
    let status: String
    let base: Version?
    /// The reason of a refusal.
    let refusal: String?
    let isReplayed: Bool
    let isUpsert: Bool
    /// Whether it replays what a lost history had.
    let isAgain: Bool
    let version: Version?
    let fields: [String: Any]
    /// The row that the device is to have now, without data where the record is deleted.
    let record: (version: Version, data: [String: Any]?)?
    private let patched: Set<String>
    private let bases: [String: Any]
    let overwritten: [(field: String, theirs: Value?, rule: String)]
    let lost: [(field: String, rule: String)]

    init?(_ operation: [String: Any], _ result: [String: Any], device: Int, scope: Scope) {
        guard let entity = operation["entity"] as? String, let id = operation["id"] as? String,
            let lane = operation["lane"] as? String, let number = operation["number"] as? Int,
            let status = result["status"] as? String
        else { return nil }
        (self.device, self.scope, self.status) = (device, scope, status)
        (self.lane, self.number) = (lane, number)
        key = OracleKey(entity: entity, record: id)
        group = operation["group"] as? String
        base = (operation["baseVersion"] as? Int).map(Version.init)
        refusal = (result["error"] as? [String: Any])?["code"] as? String
        isReplayed = result["replayed"] as? Bool ?? false
        isUpsert = operation["type"] as? String == "upsert"
        isAgain = operation["original"] != nil
        version = (result["version"] as? Int).map(Version.init)
        fields = operation["fields"] as? [String: Any] ?? [:]
        record = (result["record"] as? [String: Any]).map { record in
            (Version(record["version"] as? Int ?? 0), record["data"] as? [String: Any])
        }
        patched = Set((operation["patch"] as? [[String: Any]] ?? []).compactMap { $0["field"] as? String })
        bases = operation["bases"] as? [String: Any] ?? [:]
        overwritten = (result["overwrote"] as? [[String: Any]] ?? []).map {
            ($0["field"] as? String ?? "", $0["theirs"].flatMap(Value.init(json:)), $0["rule"] as? String ?? "")
        }
        lost = (result["lost"] as? [[String: Any]] ?? []).map {
            ($0["field"] as? String ?? "", $0["rule"] as? String ?? "")
        }
    }

    func base(of field: String) -> Version { (bases[field] as? Int).map(Version.init) ?? base ?? -1 }

    /// Whether the edit sets a field.
    func names(_ field: String) -> Bool { fields[field] != nil || patched.contains(field) }

    var took: Bool { status == "applied" || status == "merged" }

    /// Whether the times of two edits have decided about a field.
    func isByTime(_ field: String) -> Bool {
        overwritten.contains { $0.field == field && $0.rule == "lastEditWins" }
            || lost.contains { $0.field == field && $0.rule == "lastEditWins" }
    }

    func tells(of field: String) -> Bool {
        overwritten.contains { $0.field == field } || lost.contains { $0.field == field }
    }
}
