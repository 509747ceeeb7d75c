import TidemarkCore
import TidemarkWire

extension ScopeDriver {
    /// Takes a nudge: wakes the scope, unless its rows are that far already, as they are after its own push. A wait
    /// after a failure goes on.
    func hear(_ head: Version) async {
        heard = max(heard ?? head, head)
        // An exchange under way may bring it; the driver compares once that is done.
        if !machine.isBusy { await rouseWhereBehind() }
    }

    /// Wakes the scope where the newest head of its nudges is not here yet.
    func rouseWhereBehind() async {
        guard let head = heard else { return }
        heard = nil
        let scope = scope
        let known = try? await file.read { db in try ScopeRecord.read(db, scope) }
        // A file that cannot be read now is asked again at the tick.
        guard let known, known.head.map({ $0 < head }) ?? true else { return }
        rouse()
    }

    /// Whether the server refuses this device the scope; `nil` while that is not known.
    var isRefused: Bool? {
        switch machine.state {
        case .stopped(let failure, _): failure == .forbidden || failure == .unauthenticated
        case .idle, .applying, .filling: false
        case .exchanging, .bootstrapping, .waiting: nil
        }
    }

    /// Wakes the loop of `run()`.
    ///
    /// - Parameter syncs: whether it is to do something, and not only to look anew how long it sleeps. A call that asks
    ///   only for the look does not undo one that wants something done.
    func rouse(syncs: Bool = true) {
        isRetimed = !syncs && (isRetimed || !signal.isRaised)
        signal.raise()
    }
}
