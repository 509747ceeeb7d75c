/// Something about the app's schema that its developer should know. One kind is told in one sentence, however many
/// tables it is about.
enum SchemaRemark: Hashable, Sendable {
    /// An app trigger that writes to a synced table, also for what comes from the server.
    case trigger(String, table: String)
    /// A unique index of nothing but expressions that no trigger can work out.
    case hiddenUnique(index: String, table: String)
    /// New rows with ids of their own, where the server assigns them.
    case ownIDs(table: String)
    /// A key that counts up on each device.
    case countedIDs(table: String)

    /// The number of subjects that a sentence names; the others are counted.
    private static let shown = 3

    /// The sentences for all of them, those of one kind as one.
    static func summary(_ remarks: [SchemaRemark]) -> [String] {
        var kinds: [(what: String, remedy: String, subjects: [String])] = [
            (
                "Triggers that run for changes from the server too, and write to a synced table",
                "Add WHEN NOT EXISTS (SELECT 1 FROM tidemark_applying).", []
            ),
            (
                "Unique indexes of expressions that no trigger can work out, so that a REPLACE by them is not seen",
                "Add a column to the index, or use no REPLACE.", []
            ),
            (
                "Tables whose new rows have ids of their own, which the server will refuse",
                "Insert them under temporary ids (TemporaryID).", []
            ),
            (
                "Tables whose integer keys two devices may give alike, so that unrelated rows merge into one",
                "Give new rows UUIDs or random 63-bit integers, or, where the key is one column, declare `ids: server` "
                    + "(see Documentation/Ids.md).",
                []
            ),
        ]
        for remark in remarks {
            switch remark {
            case .trigger(let trigger, let table): kinds[0].subjects.append("'\(trigger)' on '\(table)'")
            case .hiddenUnique(let index, let table): kinds[1].subjects.append("'\(index)' of '\(table)'")
            case .ownIDs(let table): kinds[2].subjects.append("'\(table)'")
            case .countedIDs(let table): kinds[3].subjects.append("'\(table)'")
            }
        }
        return kinds.filter { !$0.subjects.isEmpty }.map { kind in
            let others = kind.subjects.count - shown
            let named = kind.subjects.prefix(shown).joined(separator: ", ")
            let rest = others > 0 ? " and \(others) \(others == 1 ? "other" : "others")" : ""
            return "\(kind.what): \(named)\(rest). \(kind.remedy)"
        }
    }
}
