import Foundation
import Observation
import Tidemark

/// Draws the screens as text, and reads a command from each line: what views and buttons would do.
@MainActor final class Terminal {
    private enum Screen { case notes, problems }

    private let notebook: Notebook
    private let notes: NotesScreen
    private let problems: ProblemsScreen
    private var shown = Screen.notes
    private var drawn = ""

    init(_ notebook: Notebook) {
        self.notebook = notebook
        notes = NotesScreen(notebook)
        problems = ProblemsScreen(notebook)
    }

    /// Ends with the input, or at `quit`.
    func run() async {
        let following = [Task { await notes.follow() }, Task { await problems.follow() }]
        defer { for task in following { task.cancel() } }
        draw()
        for await line in Self.lines {
            let words = line.split(separator: " ", maxSplits: 2).map(String.init)
            if words.first == "quit" { break }
            do { try await carryOut(words) } catch { print("\(error)") }
            draw()
        }
        await notebook.close()
    }

    private func carryOut(_ words: [String]) async throws {
        let rest = words.dropFirst().joined(separator: " ")
        let index = (words.dropFirst().first.flatMap { Int($0) } ?? 0) - 1
        let text = words.count > 2 ? words[2] : ""
        switch words.first {
        case "notes": shown = .notes
        case "problems": shown = .problems
        case "add" where !rest.isEmpty: try await notebook.add(rest)
        case "edit" where notes.rows.indices.contains(index) && !text.isEmpty:
            try await notebook.edit(notes.rows[index].note, title: text)
        case "delete" where notes.rows.indices.contains(index): try await notebook.delete(notes.rows[index].note)
        case "mine" where problems.conflicts.indices.contains(index):
            try await problems.keepMine(problems.conflicts[index])
        case "theirs" where problems.conflicts.indices.contains(index):
            try await problems.takeTheirs(problems.conflicts[index])
        case "retry" where problems.refused.indices.contains(index) && !text.isEmpty:
            try await problems.retry(problems.refused[index], title: text)
        case "discard" where problems.refused.indices.contains(index):
            try await problems.discard(problems.refused[index])
        case "refresh": try await notebook.sync.syncNow()
        case "online": await notebook.goOnline()
        case "offline": await notebook.goOffline()
        case "signout": await notebook.signOut()
        default:
            print(
                "notes, problems, add TEXT, edit N TEXT, delete N, mine N, theirs N, retry N TEXT, discard N, refresh, "
                    + "online, offline, signout, quit")
        }
    }

    /// Draws the screen now, and again whenever something on it has changed.
    private func draw() {
        let text = withObservationTracking {
            shown == .notes ? notesText : problemsText
        } onChange: {
            Task { @MainActor in self.draw() }
        }
        guard text != drawn else { return }
        drawn = text
        print(text)
    }

    private var notesText: String {
        var lines = ["── Notes ──"]
        for (number, row) in notes.rows.enumerated() {
            lines.append("\(number + 1) \(row.state.sign.symbol) \(row.note.title)")
            if case .rejected(let reason) = row.state { lines.append("    \(reason)") }
        }
        lines.append(notes.shown.status.description)
        if let fraction = notes.shown.fraction { lines.append("\(Int(fraction * 100)) %") }
        if let error = notes.error ?? notes.shown.status.lastError { lines.append("\(error.detail) \(error.hint)") }
        let count = problems.conflicts.count + problems.refused.count
        if count > 0 { lines.append("problems: \(count)") }
        return lines.joined(separator: "\n")
    }

    private var problemsText: String {
        var lines = ["── Problems ──"]
        for (number, conflict) in problems.conflicts.enumerated() {
            lines.append("conflict \(number + 1): mine “\(conflict.titles.mine)”, theirs “\(conflict.titles.theirs)”")
        }
        for (number, operation) in problems.refused.enumerated() {
            lines.append("refused \(number + 1): “\(operation.title)”: \(operation.detail) \(operation.hint)")
        }
        if lines.count == 1 { lines.append("none") }
        return lines.joined(separator: "\n")
    }

    /// Standard output may be a pipe, which would keep what `Swift.print` says.
    private func print(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

    private static var lines: AsyncStream<String> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
    }
}
