import TidemarkCore
package import TidemarkWire

/// A page of changes, and where the next one begins.
struct Page {
    /// The members from `scope` to `head`, without braces.
    var members: [UInt8]
    var count: Int
}

extension SyncServer {
    /// `GET /sync/changes`: one page of what changed since a checkpoint (A4).
    package func changes(in scope: Scope, since: String?, limit: Int64?, access: Access) async throws -> [UInt8] {
        try access.require(.read, in: scope)
        let limit = try pageLimit(limit)
        let page = try await page(of: scope, since: since, limit: limit, leavingOut: [])
        return [UInt8(ascii: "{")] + page.members + [UInt8(ascii: "}")]
    }

    func pageLimit(_ limit: Int64?) throws(Problem) -> Int {
        guard let limit else { return limits.defaultPage }
        guard (1...Int64(limits.maximumPage)).contains(limit) else {
            throw Problem(.limitOutOfRange, "`limit` is \(limit); it may be from 1 to \(limits.maximumPage).")
        }
        return Int(limit)
    }

    /// Reads a page in one view of the scope.
    ///
    /// - Parameter own: versions that the reader wrote itself in this very request and knows already.
    func page(of scope: Scope, since: String?, limit: Int, leavingOut own: Set<Version>) async throws -> Page {
        let byteBudget = limits.pageBytes
        let key = store.tokenKey
        return try await store.read(scope) { reader in
            let history = reader.state.history
            let walk =
                try since.map { token in
                    try Checkpoint(token: token, scope: scope, key: key).resumed(in: history)
                } ?? .beginning(of: history)
            var assembly = PageAssembly(scope: scope, since: since, walk: walk, limit: limit, byteBudget: byteBudget)
            try reader.changes(
                after: walk.position, through: walk.horizon, tombstonesAfter: walk.tombstonesAfter
            ) { change in assembly.take(change, isOwn: own.contains(change.version)) }
            return assembly.finish(key: key)
        }
    }
}

/// Splices stored rows into a page: a row's fields are copied as they are, never parsed.
private struct PageAssembly {
    private let scope: Scope
    private let walk: Checkpoint
    private let limit: Int
    private let byteBudget: Int
    private var writer: JSONWriter
    private var count = 0
    private var position: Version?
    private var hasMore = false

    init(scope: Scope, since: String?, walk: Checkpoint, limit: Int, byteBudget: Int) {
        self.scope = scope
        self.walk = walk
        self.limit = limit
        self.byteBudget = byteBudget
        writer = JSONWriter(capacity: min(byteBudget, limit * 320))
        writer.raw("\"scope\":")
        writer.string(scope.name)
        writer.memberName("since")
        if let since { writer.string(since) } else { writer.raw("null") }
        writer.member("epoch", String(UInt64(bitPattern: walk.incarnation), radix: 16))
        writer.raw(",\"changes\":[")
    }

    mutating func take(_ change: BorrowedChange, isOwn: Bool) -> Bool {
        let isFull = count == limit || (count > 0 && writer.bytes.count + change.payload.count > byteBudget)
        if isFull {
            hasMore = true
            return false
        }
        position = change.version
        if isOwn { return true }
        if count > 0 { writer.raw(",") }
        count += 1
        append(change)
        return true
    }

    private mutating func append(_ change: BorrowedChange) {
        switch change.kind {
        case .upsert: writer.raw("{\"type\":\"upsert\",\"entity\":\"")
        case .delete: writer.raw("{\"type\":\"delete\",\"entity\":\"")
        case .event: writer.raw("{\"type\":\"event\",\"entity\":\"")
        }
        writer.raw(change.entity)
        writer.raw("\",\"id\":")
        writer.string(utf8: change.record)
        writer.member("version", change.version)
        if change.kind == .delete { writer.memberName("deletedAt") } else { writer.memberName("updatedAt") }
        Timestamp.write(milliseconds: change.time, to: &writer)
        if change.kind != .delete {
            writer.raw(",\"data\":")
            writer.raw(change.payload)
        }
        writer.raw("}")
    }

    consuming func finish(key: [UInt8]) -> Page {
        let next = walk.advanced(to: hasMore ? position : nil)
        writer.raw("]")
        writer.member("nextSince", next.token(scope: scope, key: key))
        writer.memberName("hasMore")
        writer.bool(hasMore)
        writer.member("head", walk.horizon)
        return Page(members: writer.bytes, count: count)
    }
}
