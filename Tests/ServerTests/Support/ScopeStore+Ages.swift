import TidemarkServer
import TidemarkWire

extension ScopeReader {
    /// As where events go with deletions.
    func aged(
        after version: Version, through last: Version, before moment: Int64, limit: Int
    ) throws -> (through: Version, rows: Int) {
        try aged(after: version, through: last, before: moment, events: true, limit: limit)
    }
}

extension ScopeWriter {
    /// Takes events, too.
    func expire(through version: Version) throws { try expire(through: version, events: true) }
}
