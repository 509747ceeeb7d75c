import TidemarkServer
import TidemarkWire

// What answers to operations say of rows.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// The row that comes with a verdict, and what the edit is said to have overwritten, are the log's.
    func checkRecord(_ verdict: OracleVerdict) throws {
        guard let table = tables[verdict.key.entity], let history = scopes[verdict.scope]?.current else { return }
        let place = "answer to device \(verdict.device) for \(verdict.key)"
        if let (version, data) = verdict.record {
            guard version >= 1, version <= history.head, history[version].key == verdict.key else {
                throw Violation("I9", "\(place): the log has no row of it at \(version)")
            }
            let cells = history[version].cells
            guard (cells == nil) == (data == nil) else {
                throw Violation("I3", "\(place): at \(version) the log has \(text(cells))")
            }
            for (index, column) in table.data.enumerated() {
                guard let found = data?[column].flatMap(Value.init(json:)), let expected = cells?[index],
                    !found.isAlmost(expected)
                else { continue }
                throw Violation(
                    "I3", "\(place): \(column) is \(found.bare) at \(version), the log has \(expected.bare)")
            }
        }
        for (field, theirs, _) in verdict.overwritten {
            guard let theirs, let index = table.data.firstIndex(of: field) else { continue }
            let stood = history.row(verdict.key, above: 0) { cells in
                cells.map { $0[index].map { theirs.isAlmost($0) } ?? true } ?? false
            }
            guard stood == nil else { continue }
            throw Violation("T1", "\(place): \(field) is said to have been \(theirs.bare), which it never was")
        }
    }

    /// Between the first and the last version of a group no scope is whole.
    func noteGroups(_ verdicts: [OracleVerdict], _ scope: Scope) {
        guard verdicts.contains(where: { $0.group != nil }), let history = scopes[scope]?.current else { return }
        var versions: [String: [Version]] = [:]
        for verdict in verdicts {
            // What an operation found as it was to become has the version that it had.
            guard let group = verdict.group, let version = verdict.version, verdict.took, !verdict.isReplayed,
                version >= 1, version <= history.head, history[version].key == verdict.key,
                self.verdicts.authors[scope]?[version] == nil
            else { continue }
            versions["\(verdict.lane) \(group)", default: []].append(version)
        }
        for versions in versions.values {
            guard let first = versions.min(), let last = versions.max(), first < last else { continue }
            self.verdicts.groups[scope, default: []].append(first...last)
        }
    }
}
