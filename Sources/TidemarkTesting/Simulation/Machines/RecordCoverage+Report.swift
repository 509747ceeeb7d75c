import TidemarkCore

extension RecordCoverage {
    /// In one line: how many states, cells and couplings were visited, and how many there are.
    package var summary: String {
        """
        \(transactions) transactions (\(unread) unread), \(states.count) states, \(cells.count) of \
        \(Self.allCells.count) cells, \(couplings.count) of \(RecordMachine.Coupling.allCases.count) couplings, \
        ways of \
        \(lengths.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", "))
        """
    }

    /// The rules that did not hold, the most frequent first.
    package var report: [String] {
        findings.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.map { what, finding in
            "\(finding.count) \(what) [seed \(finding.seed), \(finding.name)]"
        }
    }

    /// Cells and couplings that no world came to.
    package var unvisited: [String] {
        Self.allCells.subtracting(cells.keys).sorted().map(\.description)
            + RecordMachine.Coupling.allCases.filter { couplings[$0] == nil }.map { "\($0.number) \($0)" }
    }

    /// The cells of all states that the machine comes to.
    private static let allCells = RecordMachine.reachable().reduce(into: Set<RecordCell>()) { cells, machine in
        for event in RecordMachine.Event.allCases { cells.formUnion(RecordCell.all(of: machine, event)) }
    }
}
