#if Server
    import Foundation
    import GRDB
    import Tidemark
    import TidemarkSQLite
    import TidemarkServer

    /// The code of Documentation/Conflicts.md, compiled as it stands there.
    private func ruleSnippet(store: SQLiteStore) -> SyncServer {
        // snippet: rules
        SyncServer(
            store: store, entities: [.state("task", conflict: .lastEditWins, deletes: .lose)],
            rules: [
                EntityRule("task") { edit in
                    if edit.isDelete, edit.caller.principal != "ada" {
                        return .reject(code: "not_yours", detail: "Only Ada deletes tasks.")
                    }
                    guard edit.proposed["title"] != "" else {
                        return .reject(code: "title_missing", detail: "A task needs a title.", hint: "Give it one.")
                    }
                    // Two devices that count at once: both counts stand.
                    guard edit.isStale("hours"), case .integer(let mine)? = edit.mine["hours"],
                        case .integer(let current)? = edit.current?["hours"]
                    else { return .accept }
                    return .set(["hours": .integer(max(mine, current))])
                }
            ])
        // end snippet
    }

    private func decideSnippet(database: DatabaseQueue, transport: any Transport) async throws {
        // snippet: conflicts
        let sync = try SyncEngine(
            for: database, tables: [.table("contract", conflicts: .manual)], scopes: ["workspace:123"],
            transport: transport,
            onConflict: { conflict in
                // Only the note differs: both go in. Anything else waits for a person.
                guard conflict.fields.map(\.name) == ["note"], case .text(let mine)? = conflict["note"]?.mine,
                    case .text(let theirs)? = conflict["note"]?.theirs
                else { return nil }
                return .merge(["note": .text(theirs + "\n" + mine)])
            })

        for conflict in try await sync.conflicts() where conflict.isOpen {
            try await sync.resolve(conflict, with: .keepMine)  // or .takeTheirs, or .merge(…)
        }
        for operation in try await sync.rejectedOperations() where operation.code == "title_missing" {
            try await sync.retry(operation, changing: ["title": "Untitled"])  // or discard(operation)
        }
        // end snippet
    }
#endif
