#if Server
    import Foundation
    import TidemarkPostgres
    import TidemarkServer

    /// The work of `tidemark attach` and `tidemark detach` on a store.
    struct TableCommands {
        let store: PostgresStore
        private let server: SyncServer
        let file: ServerFile
        /// Refusals that are looked at after a table was attached; more of its rows are not counted.
        fileprivate static let lookLimit = 1000

        init(_ settings: Settings) throws {
            let address = try StoreAddress(settings[.store])
            guard case .postgres = address,
                let store = try address.open(partitions: settings[.partitions]).log as? PostgresStore
            else {
                throw Failure(
                    "only a store in PostgreSQL has other tables beside it",
                    hint: "name the store in the table's database: --store postgres://USER@HOST/DATABASE")
            }
            self.store = store
            file = settings.file
            server = SyncServer(
                store: store, entities: file.entities, limits: file.limits, configuration: file.configuration)
        }

        func close() { store.close() }

        /// Rows that were there before have ids of their own, and so have those of other programs.
        func check(_ entity: String) throws {
            guard file.entities.contains(where: { $0.name == entity && $0.ids == .server }) else { return }
            throw Failure(
                "the ids of \(entity) are assigned by the server, which does not know those that the table gives",
                hint: "declare it without `ids: server`, and let devices make the ids of their rows")
        }

        /// Attaches a table and takes over the rows that are in it, or goes on with that.
        func attach(
            _ plan: PostgresStore.TablePlan, _ progress: (Int) -> Void
        ) async throws -> AttachReport {
            let before = try await told { try await server.rejections(limit: 1) }.first?.id ?? 0
            let attachment = try await told { try await store.attach(plan) }
            let fill = try await fill(attachment, progress)
            let refused = try await told { try await server.rejections(limit: Self.lookLimit) }
                .filter { $0.id > before && $0.entity == attachment.entity && $0.client.isEmpty }
            let status = try await told { try await store.attachedTables() }.first { $0.entity == attachment.entity }
            return AttachReport(
                attached: AttachedReport(status ?? attachment), rows: fill.rows, placeless: fill.placeless,
                unsendable: Set(refused.map { [$0.scope.name, $0.record] }).count)
        }

        /// Notes the rows that were there before and takes them over, batch by batch.
        private func fill(
            _ attachment: PostgresStore.TableStatus, _ progress: (Int) -> Void
        ) async throws -> (rows: Int, placeless: Int) {
            var (rows, placeless, told) = (0, 0, 0)
            while true {
                let step = try await self.told { try await store.fill(attachment.entity) }
                try await drainCapture()
                rows += step.rows
                placeless += step.placeless
                if step.isLast ? rows > told : rows - told >= 50_000 {
                    told = rows
                    progress(rows)
                }
                if step.isLast { return (rows, placeless) }
            }
        }

        func detach(_ entity: String, dropsScopeColumn: Bool) async throws -> DetachReport {
            let all = try await told { try await store.attachedTables() }
            let attachment = all.first { $0.entity == entity }
            // Writes that cannot be taken over do not keep the table attached.
            var problem = attachment?.problem
            if attachment != nil {
                do { try await drainCapture() } catch {
                    problem = problem ?? (error as? Failure)?.what ?? "\(error)"
                }
            }
            let forgotten = try await told { try await store.detach(entity, dropsScopeColumn: dropsScopeColumn) }
            return DetachReport(
                table: attachment?.table ?? "", entity: entity, scopeColumn: attachment?.scopeColumn,
                dropsScopeColumn: dropsScopeColumn && attachment?.addsColumn == true,
                forgotten: forgotten, problem: forgotten > 0 ? problem : nil)
        }

        /// Until nothing is left of what was written so far; what others write meanwhile is the servers'.
        private func drainCapture() async throws {
            var rounds = 0
            while rounds < 100, try await told({ try await server.drainCapture() }) > 0 { rounds += 1 }
        }

        func told<Result>(_ work: () async throws -> Result) async throws -> Result {
            do { return try await work() } catch let error as TableError {
                throw Failure(error.message, hint: error.hint, code: error.code.rawValue)
            } catch let error as StoreUnavailable {
                throw Failure(
                    "the store cannot do it now: \(error)",
                    hint: "another program may hold the table; try again, nothing is left half done")
            }
        }
    }

    /// A table that is attached, for people and for programs.
    struct AttachedReport: Codable, Hashable, Report {
        var table, entity, key: String
        var columns: [String]
        /// Of those, the ones that devices do not write.
        var readOnly: [String]
        /// Columns whose names look like a secret, or like a right that devices may write.
        var sensitive: [String]
        /// Columns of exact numbers, which devices have to declare TEXT.
        var exact: [String]
        /// Whether the key is a number, which two devices may both make up.
        var hasNumberKey: Bool
        var scopeColumn: String?
        /// The scope of all rows, or what stands before the column's value.
        var scope: String
        /// Whether all rows that were there before are taken over or noted.
        var filled: Bool
        /// Writes that are noted and not in the log yet.
        var notes: Int
        /// Why the table cannot be read; those writes wait until it can.
        var problem: String?

        init(_ attachment: PostgresStore.TableStatus) {
            (table, entity, key) = (attachment.table, attachment.entity, attachment.key)
            columns = attachment.columns
            (readOnly, sensitive) = (attachment.readOnly, attachment.sensitive)
            (exact, hasNumberKey) = (attachment.exact, attachment.hasNumberKey)
            (scopeColumn, scope) = (attachment.scopeColumn, attachment.scope)
            (filled, notes) = (attachment.isFilled, attachment.notes)
            problem = attachment.problem
        }

        var lines: [String] { heading + troubles }

        /// The table as it was declared.
        var heading: [String] {
            let place = scopeColumn.map { "scope \(scope)<\($0)>" } ?? "scope \(scope)"
            let columns = columns.map { readOnly.contains($0) ? "\($0) (read only)" : $0 }.joined(separator: ", ")
            var lines = ["\(table) as \(entity): key \(key), \(place), columns \(columns)"]
            for column in sensitive {
                lines.append("  \(column): its name looks like a secret or a right; should devices have it?")
            }
            if !exact.isEmpty {
                lines.append(
                    "  \(exact.joined(separator: ", ")): exact numbers; declare TEXT on devices, since a NUMERIC or "
                        + "REAL column holds another value and differs for ever")
            }
            if hasNumberKey, Set(self.columns) != Set(readOnly) {
                lines.append("  \(key): a number; two devices that insert rows may give two of them the same one")
            }
            return lines
        }

        /// The troubles that keep its rows from the devices.
        var troubles: [String] {
            var lines: [String] = []
            if !filled { lines.append("  older rows are not all taken over: give the same `tidemark attach` again") }
            if notes > 0 { lines.append("  " + notes.counted("note") + " that no server has taken over yet") }
            if let problem { lines.append("  it cannot be read: \(problem)") }
            return lines
        }
    }

    /// The result of `tidemark attach`.
    struct AttachReport: Codable, Hashable, Report {
        var attached: AttachedReport
        /// Rows that were there before.
        var rows: Int
        /// Of those, rows that are in no scope.
        var placeless: Int
        /// Rows that cannot travel, by the list of refused edits: at least so many, where it is `lookLimit`.
        var unsendable: Int

        var lines: [String] {
            var lines = attached.heading + [rows.counted("row was there before", "rows were there before")]
            if attached.problem != nil { lines += attached.troubles }
            if placeless > 0 {
                lines.append(
                    placeless.counted("of them is", "of them are")
                        + " in no scope: the column is NULL or no scope's name")
            }
            if unsendable > 0 {
                let least = unsendable < TableCommands.lookLimit ? "" : "at least "
                lines.append(
                    least + unsendable.counted("row cannot travel", "rows cannot travel")
                        + ": `tidemark rejected --store …` lists each with the reason")
            }
            return lines
        }
    }

    /// The outcome for one table of many.
    struct AttachedOrNot: Codable, Report {
        var table: String
        var report: AttachReport?
        var code, error, hint: String?

        init(table: String, report: AttachReport) { (self.table, self.report) = (table, report) }

        init(table: String, failure: Failure) {
            (self.table, code, error, hint) = (table, failure.code, failure.what, failure.hint)
        }

        var lines: [String] {
            report?.lines ?? ["\(table) is not attached: \(error ?? "")"] + (hint.map { ["  \($0)"] } ?? [])
        }
    }

    /// The result of `tidemark detach`.
    struct DetachReport: Codable, Hashable, Report {
        var table, entity: String
        var scopeColumn: String?
        var dropsScopeColumn: Bool
        /// Writes that the log does not have, and why they could not be taken over, where that is known.
        var forgotten: Int
        var problem: String?

        var lines: [String] {
            var lines = ["detached \(table); its rows and the log's records stay"]
            if dropsScopeColumn { lines.append("the column \(scopeColumn ?? "") is gone") }
            if forgotten > 0 {
                let reason = problem.map { ": \($0)" } ?? ""
                lines.append(forgotten.counted("write was", "writes were") + " not taken over\(reason)")
                lines.append("  the log holds older values of those rows; attach again with --table-wins")
            }
            return lines
        }
    }
#endif
