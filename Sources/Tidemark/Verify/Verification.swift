import GRDB
import TidemarkCore
import TidemarkWire

/// Compares one scope's tables with the server, finds by halves what differs and, where asked to, fetches just that.
struct Verification: Sendable {
    /// Times that a comparison begins anew: because another engine moved the scope, or after a repair.
    private static let roundLimit = 5

    let schemaCache: SchemaCache
    let scope: Scope
    /// `nil`: what differs is only named.
    let repair: RecordRepair?

    struct Result: Sendable {
        var part = VerifyReport.Part()
        var counts = SyncReport.Counts()
        var error: SyncError?
    }

    /// - Parameter sync: brings the scope up to date, and says what stood in the way.
    func run(sync: @Sendable () async -> (SyncReport.Counts, SyncError?)) async -> Result {
        var result = Result()
        var progress = Progress()
        for round in 0..<Self.roundLimit {
            let (counts, error) = await sync()
            result.counts += counts
            result.error = error
            do {
                let found = try await compare(&result)
                result.error = nil
                let unfetched = report(found, &progress, &result)
                guard repair != nil else { return result }
                guard !unfetched.isEmpty, round + 1 < Self.roundLimit else {
                    explain(found, progress, &result)
                    return result
                }
                progress.fetched.formUnion(try await repair(unfetched, &result))
            } catch {
                // Moved meanwhile, by another engine on this file or by the server's sweep: synced and compared again.
                if error is StandMoved || (error as? Failure)?.problem?.code == .digestUnavailable {
                    result.error =
                        result.error
                        ?? SyncError(
                            .serverUnavailable, "The scope changed faster than it could be compared.",
                            hint: "Compare again when less is going on.", scope: scope)
                    continue
                }
                result.error = Failure.database(error, scope: scope).error
                return result
            }
        }
        return result
    }

    /// The differing records by table, and whether there are more.
    private typealias Found = [String: (records: [RecordID], isCutShort: Bool)]

    private struct Progress {
        /// All records that differed in any round.
        var differing: [String: Set<RecordID>] = [:]
        /// Those of which the server's answer was taken in.
        var fetched: Set<RefetchQueue.Record> = []
    }

    private func compare(_ result: inout Result) async throws -> Found {
        let (schema, scope) = (try await schemaCache.install(), scope)
        guard let stand = try await schemaCache.file.read({ try ScopeStand($0, scope) }) else { throw StandMoved() }
        var questions = DigestQuestions(
            schemaCache: schemaCache, scope: scope, clientID: schema.clientID, stand: stand)
        defer { result.counts += questions.counts }
        let answer = try await questions.ask()
        result.part.version = answer.version
        var found: Found = [:]
        for shape in schema.shapes(in: scope) {
            var table = result.part.tables[shape.name] ?? VerifyReport.Table()
            defer { result.part.tables[shape.name] = table }
            if let reason = answer.reasonToLeaveOut(shape.name) {
                table.gaps = [VerifyReport.Gap(column: nil, reason: reason == "push" ? .pushOnly : .events)]
                continue
            }
            let sums = try await ServerRowScan(shape, scope, stand).run(
                schemaCache.file, into: LocalDigest(shape, columns: Array(shape.data.indices)))
            let comparison = TableComparison(
                shape, in: scope, server: answer.digest(of: shape.name), own: sums.parts[0])
            (table.records, table.gaps) = (comparison.ownCount, comparison.gaps)
            guard comparison.differs else { continue }
            var bisection = DigestBisection(comparison, scope: scope, stand: stand, file: schemaCache.file)
            try await bisection.run(&questions)
            found[shape.name] = (bisection.differing, bisection.isCutShort)
        }
        return found
    }

    /// Enters what was found into the report, and returns what was not fetched yet.
    private func report(_ found: Found, _ progress: inout Progress, _ result: inout Result) -> [RefetchQueue.Record] {
        var unfetched: [RefetchQueue.Record] = []
        for entity in result.part.tables.keys.sorted() {
            let records = found[entity]?.records ?? []
            let all = progress.differing[entity, default: []].union(records)
            result.part.tables[entity]?.isCutShort = found[entity]?.isCutShort ?? false
            result.part.tables[entity]?.differing = all.count
            result.part.tables[entity]?.repaired = all.count - Set(records).count
            result.part.tables[entity]?.differingIDs = all.sorted().prefix(VerifyReport.idLimit).map(\.text)
            progress.differing[entity] = all
            unfetched += records.map { RefetchQueue.Record(entity: entity, id: $0) }
                .filter { !progress.fetched.contains($0) }
        }
        return unfetched
    }

    /// Says of each record that differs still why it does, where no answer has said it.
    private func explain(_ found: Found, _ progress: Progress, _ result: inout Result) {
        for (entity, records) in found.mapValues(\.records) {
            for id in records where result.part.tables[entity]?.unrepaired[id.text] == nil {
                let isFetched = progress.fetched.contains(RefetchQueue.Record(entity: entity, id: id))
                result.part.tables[entity]?.noteUnrepaired(
                    id.text,
                    isFetched
                        ? "The server's row was taken in, and the row here is not as it: something on this device, "
                            + "such as a trigger, changes it or takes it away."
                        : "The server's row could not be taken in while rows of the scope were written that no trigger "
                            + "saw. Verify again.")
            }
        }
    }

    /// Returns the records of which the server's answer was taken in.
    private func repair(
        _ records: [RefetchQueue.Record], _ result: inout Result
    ) async throws -> Set<RefetchQueue.Record> {
        let schema = try await schemaCache.install()
        let declarations = try await schemaCache.declarations(clientID: schema.clientID, scope: scope)
        let fetched = try await RecordFetch(
            schemaCache: schemaCache, scope: scope, schema: schema, declarations: declarations, repair: repair
        ).run(records)
        result.counts += fetched.counts
        for record in fetched.unsent { result.part.tables[record.entity]?.noteUnsent(record.id.text) }
        for (record, reason) in fetched.unrepaired {
            result.part.tables[record.entity]?.noteUnrepaired(record.id.text, reason)
        }
        return Set(records).subtracting(fetched.unanswered)
    }
}
