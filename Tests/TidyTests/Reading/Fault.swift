import Testing

/// One place that breaks a rule.
struct Fault: Equatable, CustomStringConvertible {
    let path: String
    let line: Int
    let message: String

    var description: String { "\(path):\(line): \(message)" }
}

/// Reports every fault as an issue of its own, so that one run lists them all.
func expectNone(_ faults: [Fault], sourceLocation: SourceLocation = #_sourceLocation) {
    for fault in faults {
        Issue.record(Comment(rawValue: fault.description), sourceLocation: sourceLocation)
    }
}
