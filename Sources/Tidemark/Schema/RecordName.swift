/// A record of this file, by table and id.
struct RecordName: Hashable, Sendable {
    var entity: String
    var record: String
}
