#if Server
    import Tidemark

    /// Where the rows of one table stand: the four numbers add up to its rows.
    struct TableRows: Codable, Hashable {
        var table: String
        var rows, confirmed, outgoing, stalled, unable: Int
        /// Deletes that the server has not taken, and rows that are kept outside the table.
        var deletes, quarantined: Int

        init(_ table: String, _ rows: SyncStatus.Rows) {
            self.table = table
            self.rows = rows.total
            (confirmed, outgoing, stalled, unable) = (rows.confirmed, rows.outgoing, rows.stalled, rows.unable)
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
            if outgoing > 0 { parts.append("\(outgoing) outgoing") }
            if stalled > 0 { parts.append("\(stalled) stalled") }
            if unable > 0 { parts.append("\(unable) unable to travel") }
            if deletes > 0 { parts.append(deletes.counted("delete") + " not taken yet") }
            if quarantined > 0 { parts.append("\(quarantined) quarantined") }
            return parts
        }
    }

    /// Writes that no trigger saw, and that are too many to be sent without a word.
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
