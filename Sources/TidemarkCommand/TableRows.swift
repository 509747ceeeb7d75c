#if Server
    import Tidemark

    /// Where the rows of one table stand: the four numbers add up to its rows.
    struct TableRows: Codable, Hashable {
        var table: String
        var rows, confirmed, pending, blocked, unable: Int
        /// Deletes on their way, and rows that are kept outside the table.
        var deletes, quarantined: Int

        init(_ table: String, _ rows: SyncStatus.Rows) {
            self.table = table
            self.rows = rows.total
            (confirmed, pending, blocked, unable) = (rows.confirmed, rows.pending, rows.blocked, rows.unable)
            (deletes, quarantined) = (rows.deletes, rows.quarantined)
        }

        static func all(_ status: SyncStatus) -> [TableRows] {
            status.tables.sorted { $0.key < $1.key }.map { TableRows($0.key, $0.value) }
        }

        var line: String { "table \(table): \(([rows.counted("row")] + parts).joined(separator: ", "))" }

        /// The rows that are not confirmed, in words; `nil` where all are.
        var troubles: String? {
            let troubles = parts.dropFirst()
            return troubles.isEmpty ? nil : "\(table): " + troubles.joined(separator: ", ")
        }

        private var parts: [String] {
            var parts = ["\(confirmed) confirmed"]
            if pending > 0 { parts.append("\(pending) pending") }
            if blocked > 0 { parts.append("\(blocked) blocked") }
            if unable > 0 { parts.append("\(unable) cannot travel") }
            if deletes > 0 { parts.append(deletes.counted("delete waits", "deletes wait")) }
            if quarantined > 0 { parts.append("\(quarantined) kept outside the table") }
            return parts
        }
    }

    /// Writes that nobody saw being made, and that are too many to be sent without a word.
    struct InferredReport: Codable, Hashable {
        var table: String
        var updates, deletes: Int

        init(_ edits: InferredEdits) { (table, updates, deletes) = (edits.table, edits.updates, edits.deletes) }

        var line: String {
            var parts: [String] = []
            if deletes > 0 { parts.append(deletes.counted("delete")) }
            if updates > 0 { parts.append(updates.counted("changed row")) }
            return "to confirm: \(parts.joined(separator: " and ")) in \(table), made while nothing was captured; "
                + "`tidemark sync FILE --confirm` sends them, `--take-servers` takes the server's rows instead"
        }
    }
#endif
