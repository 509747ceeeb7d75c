package import TidemarkCore

/// The cells and couplings that worlds came to.
package struct RecordCoverage: Sendable {
    package struct Finding: Sendable {
        package var count: Int
        /// The first world that came to it, and the record there.
        package var world: String
        package var name: String
    }

    package var transactions = 0
    /// Transactions around which the tables could not be read.
    package var unread = 0
    package var states: Set<RecordMachine> = []
    /// How often each event was found in each state of each region.
    package var cells: [RecordCell: Int] = [:]
    package var couplings: [RecordMachine.Coupling: Int] = [:]
    /// The first world that came to a cell or coupling, by its text.
    package var worlds: [String: String] = [:]
    /// Of the paths, how many had so many events.
    package var lengths: [Int: Int] = [:]
    package var findings: [String: Finding] = [:]

    package init() {}

    mutating func note(_ paths: RecordPaths.Paths, in world: String) {
        lengths[paths.length, default: 0] += 1
        for cell in paths.cells {
            if cells[cell] == nil { worlds["\(cell)"] = world }
            cells[cell, default: 0] += 1
        }
        for coupling in paths.couplings {
            if couplings[coupling] == nil { worlds[coupling.text] = world }
            couplings[coupling, default: 0] += 1
        }
    }

    package mutating func add(_ other: Self) {
        transactions += other.transactions
        unread += other.unread
        states.formUnion(other.states)
        cells.merge(other.cells, uniquingKeysWith: +)
        couplings.merge(other.couplings, uniquingKeysWith: +)
        worlds.merge(other.worlds) { first, _ in first }
        lengths.merge(other.lengths, uniquingKeysWith: +)
        findings.merge(other.findings) { left, right in
            var both = left
            both.count = left.count + right.count
            return both
        }
    }
}

extension RecordCoverage {
    /// In one line: how many states, cells and couplings were visited, and how many there are.
    package var summary: String {
        let paths = lengths.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", ")
        return """
            \(transactions) transactions (\(unread) unread), \(states.count) states, \(cells.count) of \
            \(RecordCell.visible.count) cells, \(couplings.count) of \(RecordMachine.Coupling.allCases.count) \
            couplings, paths of \(paths)
            """
    }

    /// The rules that did not hold, the most frequent first.
    package var report: [String] {
        findings.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.map { what, finding in
            "\(finding.count) \(what) [\(finding.world), \(finding.name)]"
        }
    }

    /// Cells and couplings that some world came to, as ``unvisited`` writes them.
    package var visited: Set<String> { Set(worlds.keys) }

    /// Cells and couplings that no world came to.
    package var unvisited: [String] {
        RecordCell.visible.subtracting(cells.keys).sorted().map(\.description)
            + RecordMachine.Coupling.allCases.filter { $0.givesWay && couplings[$0] == nil }.map(\.text)
    }
}
