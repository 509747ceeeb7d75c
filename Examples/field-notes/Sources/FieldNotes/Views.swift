#if canImport(SwiftUI)
    import SwiftUI
    import Tidemark

    // snippet: swiftui
    struct NotesView: View {
        let screen: NotesScreen
        let sync: SyncEngine

        var body: some View {
            List(screen.rows) { row in
                LabeledContent(row.note.title) {
                    Text(row.state.sign.symbol).accessibilityLabel(row.state.sign.word)
                }
            }
            .refreshable { _ = try? await sync.syncNow() }
            .safeAreaInset(edge: .bottom) {
                VStack {
                    if let fraction = screen.shown.fraction { ProgressView(value: fraction) }
                    Text(screen.shown.status.description).font(.footnote)
                }
            }
            .task { await screen.follow() }
        }
    }
    // end snippet

    struct ProblemsView: View {
        let screen: ProblemsScreen

        var body: some View {
            List {
                ForEach(screen.conflicts) { conflict in
                    VStack(alignment: .leading) {
                        Text("“\(conflict.titles.mine)” or “\(conflict.titles.theirs)”?")
                        Button("Keep mine") { Task { try await screen.keepMine(conflict) } }
                        Button("Take theirs") { Task { try await screen.takeTheirs(conflict) } }
                    }
                }
                ForEach(screen.refused) { operation in
                    VStack(alignment: .leading) {
                        Text("“\(operation.title)”: \(operation.detail) \(operation.hint)")
                        Button("Discard") { Task { try await screen.discard(operation) } }
                    }
                }
            }
            .task { await screen.follow() }
        }
    }
#endif
