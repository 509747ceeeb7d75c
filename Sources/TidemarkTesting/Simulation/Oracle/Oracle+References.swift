import TidemarkServer
import TidemarkWire

// References at the end: what the schema says of the children of a deleted parent has been done.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// Where foreign keys are not enforced, the app itself may leave them dangling. A restored server or device may
    /// have lost the moment at which somebody had both the child and the news.
    func checkReferences() throws {
        guard world.plan.hasForeignKeys, scopes.values.allSatisfy({ $0.newest == 0 })
        else { return }
        for (scope, histories) in scopes {
            let history = histories.current
            for key in history.versions.keys.sorted() {
                guard let table = tables[key.entity], let cells = history.newest(key)?.compactMap(\.self),
                    cells.count == table.data.count
                else { continue }
                for parent in table.parents {
                    // A parent that moves from scope to scope leaves a tombstone in each, and is not gone.
                    guard tables[parent.table]?.place == nil, let place = parent.key(cells),
                        history.versions[place] != nil, history.newest(place) == nil,
                        scopes.values.allSatisfy({ $0.current.newest(place) == nil }), !isLost(key), !isLost(place)
                    else { continue }
                    throw Violation("I4", "\(key) in \(scope) refers to \(place), which is deleted")
                }
            }
        }
    }
}
