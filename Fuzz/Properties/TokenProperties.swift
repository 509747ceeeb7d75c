import TidemarkCore
import TidemarkWire

private let key = Array("not a secret: only fuzzing seals with it".utf8)
private let scope: Scope = "workspace:1"

extension FuzzTarget {
    static let tokens = [
        FuzzTarget("token") { input in
            try altered(input.text)
            try sealed(Array(input))
        },
        FuzzTarget("epoch") { input in
            guard let epoch = Epoch(text: input.text) else { return }
            try hold(Epoch(text: epoch.text) == epoch, "an epoch comes back as another one")
            try hold(input.elementsEqual(input.text.utf8), "an epoch was read out of bytes that are no text")
            for history in histories(epoch) {
                let shared = history.shared(with: epoch)
                try hold(shared <= history.head, "a history shares what it does not have")
                try hold(history.knows(epoch) || !epoch.isBeforeAll, "the beginning is known everywhere")
            }
        },
    ]
}

/// A text that this server did not seal opens nothing; one bit more or less in one that it did opens nothing either.
private func altered(_ text: String) throws {
    let handle = SnapshotHandle(epoch: Epoch(id: 1, start: 0), horizon: 9, base: 0, scan: 1)
    let checkpoint = try? Checkpoint(token: text, scope: scope, key: key)
    try hold(checkpoint == nil, "a checkpoint was forged")
    try hold(SnapshotHandle(token: text, scope: scope, key: key) == nil, "a handle was forged")
    try hold(Cursor(token: text, in: handle, scope: scope, key: key) == nil, "a cursor was forged")
    try hold(SharedPage(token: text, key: key) == nil, "a shared page's address was forged")
}

/// What stands behind a valid seal is whatever an older or newer server put there.
private func sealed(_ body: [UInt8]) throws {
    try turned(body)
    let checkpoint = try? Checkpoint(token: seal(body, .checkpoint), scope: scope, key: key)
    if let checkpoint {
        let again = try Checkpoint(token: checkpoint.token(scope: scope, key: key), scope: scope, key: key)
        try hold(again == checkpoint, "a checkpoint comes back as another one")
        for history in histories(checkpoint.epoch) {
            guard let next = try? checkpoint.resumed(in: history) else { continue }
            try hold(next.position <= next.horizon, "a scan begins behind its end")
            try hold(next.advanced(to: nil).complete == next.horizon, "a scan ends short of its horizon")
        }
    }
    let address = SealedToken.seal(body, .page, scope: nil, key: key)
    if let page = SharedPage(token: address, key: key) {
        let again = SharedPage(token: page.token(key: key), key: key)
        try hold(again == page, "a shared page comes back as another one")
    }
    guard let handle = SnapshotHandle(token: seal(body, .snapshot), scope: scope, key: key) else {
        return try cursor(body)
    }
    try hold(
        SnapshotHandle(token: handle.token(scope: scope, key: key), scope: scope, key: key) == handle,
        "a handle comes back as another")
    for history in histories(handle.epoch) { try? handle.check(in: history) }
}

/// Any one bit more or less opens nothing, and neither does another purpose.
private func turned(_ body: [UInt8]) throws {
    guard !body.isEmpty, var bytes = Base64URL.decode(seal(body, .checkpoint)), bytes.count < 300 else { return }
    let isOpen = SealedToken.open(Base64URL.encode(bytes), .checkpoint, scope: scope, key: key) != nil
    try hold(isOpen, "what was sealed does not open")
    let isMixedUp = SealedToken.open(Base64URL.encode(bytes), .cursor, scope: scope, key: key) != nil
    try hold(!isMixedUp, "a checkpoint opens as a cursor")
    let bit = body.reduce(0) { ($0 * 31 + Int($1)) % (bytes.count * 8) }
    bytes[bit / 8] ^= 1 << UInt8(bit % 8)
    let isForged = SealedToken.open(Base64URL.encode(bytes), .checkpoint, scope: scope, key: key) != nil
    try hold(!isForged, "an altered token opens")
}

private func cursor(_ body: [UInt8]) throws {
    var reader = ByteReader(body)
    let handle = SnapshotHandle(epoch: Epoch(id: 1, start: 0), horizon: reader.integer() ?? 0, base: 0, scan: 1)
    guard let cursor = Cursor(token: seal(body, .cursor), in: handle, scope: scope, key: key) else { return }
    let token = cursor.token(in: handle, scope: scope, key: key)
    try hold(Cursor(token: token, in: handle, scope: scope, key: key) == cursor, "a cursor comes back as another one")
}

private func seal(_ body: [UInt8], _ purpose: SealedToken.Purpose) -> String {
    SealedToken.seal(body, purpose, scope: scope, key: key)
}

/// Stores that know the epoch as their last opening, as an earlier one, or not at all. No opening finds more than there
/// is.
private func histories(_ epoch: Epoch) -> [ScopeHistory] {
    let own = ScopeHistory.Incarnation(id: epoch.id, start: epoch.start)
    let others = [5, 60, 700].map { ScopeHistory.Incarnation(id: $0, start: $0) }
    return [others, others + [own]].flatMap { incarnations in
        [0, 800, Version.max].map { head in
            ScopeHistory(
                head: head, sweepFloor: head / 2, retentionFloor: head / 4,
                incarnations: incarnations.filter { $0.start <= head }.sorted { $0.start < $1.start })
        }
    }
}
