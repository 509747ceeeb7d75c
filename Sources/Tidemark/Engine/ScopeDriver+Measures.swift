import TidemarkCore
import TidemarkWire

/// Values that one scope's driver keeps in memory for its measures.
struct ScopeMeasuring: Hashable, Sendable {
    /// The stage that the work under way is in.
    var stage = SyncMeasures.Stage.seal
    /// When the first request for a scope that was never here was made.
    var began: Instant?
}

// MARK: - Measuring

extension ScopeDriver {
    /// Takes in an answer, in whose transaction the file keeps what was measured until then.
    ///
    /// - Parameter work: calls its second argument once that transaction is committed.
    func keepingMeasures<T: Sendable>(
        _ work: @Sendable (SyncMeasures, _ committed: @escaping @Sendable () -> Void) async throws -> T
    ) async throws -> T {
        let measures = schemaCache.measures
        let measured = measures.drain()
        let isKept = Locked(false)
        do {
            return try await database { try await work(measured) { isKept.withLock { $0 = true } } }
        } catch {
            // A failure behind the commit takes nothing back.
            if !isKept.withLock({ $0 }) { measures.update { $0 += measured } }
            throw error
        }
    }

    func noteFailure(_ failure: Failure) {
        let stage = failure.isOfCommit && measuring.stage == .apply ? .commit : measuring.stage
        schemaCache.measures.update { $0.failures[stage, default: 0] += 1 }
    }

    /// The operations have gone over the wire, whatever the answer is.
    func noteSent(_ exchange: Exchange) {
        schemaCache.measures.update { $0.add(exchange.traffic) }
    }

    /// The clock of the first useful data runs from the first request of a scope that was never here.
    func noteBeginning(_ record: ScopeRecord) {
        guard measuring.began == nil, record.complete == nil, record.lastSync == nil else { return }
        measuring.began = now
    }

    /// Rows stand in the tables now, or there are none.
    func noteFirstData(_ outcome: Applier.Outcome) {
        guard let began = measuring.began, outcome.pageTaken, outcome.applied > 0 || outcome.isFilled else { return }
        measuring.began = nil
        let time = Duration.milliseconds(now - began)
        schemaCache.measures.update { $0.firstData += .init(scopes: 1, total: time, longest: time) }
    }
}
