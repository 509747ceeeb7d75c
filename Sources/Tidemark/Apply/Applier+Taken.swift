import GRDB
import TidemarkWire

/// The usual answer takes a whole batch as it was sent. Its operations go straight into blocks of the history: a row of
/// the outbox that is first finished and then moved is written three times.
extension Applier {
    /// Collects operations that the server took, unless the history has to look at single ones.
    ///
    /// - Parameter least: how many are worth a block.
    func collectTaken(of count: Int, least: Int) throws {
        guard count >= least, try OutboxHistory.mayPackAtOnce(db, scope) else { return }
        taken = []
    }

    func finishTaken() throws {
        guard let taken else { return }
        self.taken = nil
        let packed = try OutboxHistory.pack(db, scope, taken, now: now)
        for (entry, verdict) in taken where !packed.contains(entry.id) {
            try Outbox.finish(db, entry, verdict, now: now)
        }
    }
}
