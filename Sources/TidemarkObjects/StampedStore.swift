public import Foundation
import Tidemark
public import TidemarkWire

/// A client of the server's exchange with two stamps (D1–D3): it keeps items, edits them offline, and sends each edit
/// with the time when it was made. The later edit wins on every device.
///
/// ```swift
/// let store = try StampedStore(
///     storage: .persistent(path: path), transport: HTTPTransport(url) { try await session.accessToken() })
/// try await store.set(["meaning": "the sea, twice a day"], of: "word", id: "tide")
/// try await store.sync()
/// ```
///
/// An item wins or loses as a whole, and the loser's values are gone. Where every field counts, or tables are your own,
/// take `SyncEngine`. A store may be used from any task.
public final class StampedStore: Sendable {
    let file: StampedFile
    let scope: Scope?
    let limits: ObjectLimits
    let transport: any Transport
    private let now: @Sendable () -> Date
    private let mutex = AsyncMutex()

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - storage: where it keeps items and edits. A file that was filled for another scope is refused while it holds
    ///     edits, and emptied otherwise.
    ///   - scope: the scope of the items; `nil` for the token's only one.
    ///   - limits: the bounds of what it sends and takes.
    ///   - transport: what carries its requests, such as `HTTPTransport`.
    ///   - now: the device's clock, asked on any thread. It may be wrong by any time: the server believes it between
    ///     the last sync and now.
    /// - Throws: ``ObjectStoreError`` `storageFailed`.
    public init(
        storage: ObjectStorage, scope: Scope? = nil, limits: ObjectLimits = ObjectLimits(), transport: any Transport,
        now: @escaping @Sendable () -> Date = { .now }
    ) throws(ObjectStoreError) {
        file = try StampedFile(storage, scope: scope)
        self.scope = scope
        self.limits = limits
        self.transport = transport
        self.now = now
    }

    // MARK: Items

    /// An item as it stands on this device, edits that are not sent in it; `nil` where there is none.
    ///
    /// - Throws: ``ObjectStoreError``.
    public func item(_ entity: String, id: RecordID) async throws -> StampedItem? {
        try await file.item(entity, id)
    }

    /// The items of an entity, in the order of their ids.
    ///
    /// - Throws: ``ObjectStoreError``.
    public func items(of entity: String) async throws -> [StampedItem] { try await file.items(entity) }

    /// Sets some fields of an item, and makes it where there is none. It is sent with the next ``sync()``.
    ///
    /// - Throws: ``ObjectStoreError`` `queryInvalid` for a name that the wire does not take.
    public func set(_ fields: [String: Value], of entity: String, id: RecordID) async throws {
        let data = try Self.data(fields)
        try Self.check(entity)
        try await file.edit(entity, id, data, at: milliseconds)
    }

    /// Deletes an item. It is sent with the next ``sync()``, and counts like any edit.
    ///
    /// - Throws: ``ObjectStoreError`` `queryInvalid` for a name that the wire does not take.
    public func delete(_ entity: String, id: RecordID) async throws {
        try Self.check(entity)
        try await file.edit(entity, id, nil, at: milliseconds)
    }

    /// How many items have an edit that the server has not answered.
    ///
    /// - Throws: ``ObjectStoreError``.
    public func unsentCount() async throws -> Int { try await file.unsentCount() }

    /// Edits that the server did not take, and why. Each stays until the item is edited again.
    ///
    /// - Throws: ``ObjectStoreError``.
    public func refusals() async throws -> [StampedRefusal] { try await file.refusals() }

    // MARK: Syncing

    /// Sends every edit and takes what has changed elsewhere. What was lost on its way is sent again by the next call.
    ///
    /// - Returns: what was sent and what came.
    /// - Throws: ``ObjectStoreError``; `CancellationError` where the task was cancelled. What was taken by then stays.
    @discardableResult
    public func sync() async throws -> StampedReport {
        await mutex.lock()
        defer { mutex.unlock() }
        var report = StampedReport()
        var course = StampedCourse(limit: limits.pageObjects)
        for _ in 0..<limits.pages {
            try Task.checkCancellation()
            let question = try await file.question(limit: course.editLimit)
            let answer: StampedAnswer
            do { answer = try await ask(question) } catch let error as ObjectStoreError {
                if error.code == .checkpointExpired, question.clientStamp > 0 {
                    try await file.beginAnew()
                } else {
                    try course.meet(error, question)
                }
                continue
            }
            if let (edit, error) = course.takeSuspect() {
                try await file.refuse(edit, RejectionCode.requestRefused, error.detail)
            }
            report.sent += question.edits.count
            report.received += answer.items.count
            // Times of one history only grow: the server has been put back, and cannot name what it has lost.
            if answer.clientStamp < question.clientStamp {
                try await file.beginAnew()
                continue
            }
            let isMoreToDo = try await file.take(answer, to: question)
            if let denial = course.denial, !answer.hasMore { throw denial }
            if !isMoreToDo { return report }
        }
        throw ObjectStoreError(
            .limitExceeded, "A sync has more than \(limits.pages) requests.",
            hint: "Sync again, or raise `ObjectLimits.pages`.")
    }

    private func ask(_ question: StampedQuestion) async throws -> StampedAnswer {
        let response = try await send(
            TransportRequest(
                method: "POST", path: "/sync/stamped", query: scope.map { [.init("scope", $0.name)] } ?? [],
                body: question.body(limit: limits.pageObjects)))
        guard response.status == 200 else { throw ObjectStoreError(response) }
        do throws(JSONError) { return try StampedAnswer(document: response.body) } catch {
            throw ObjectStoreError.unusable("The answer is not what this server sends: \(error.reason.rawValue).")
        }
    }

    // MARK: Parts

    private var milliseconds: Int64 { now().milliseconds }

    private static func check(_ entity: String) throws(ObjectStoreError) {
        guard Identifier.isEntity(entity) else {
            throw ObjectStoreError(
                .queryInvalid, "The entity's name is not of the allowed form.", hint: "Names are 1 to 128 bytes long.")
        }
    }

    /// Read once more, as the server will.
    private static func data(_ fields: [String: Value]) throws(ObjectStoreError) -> DataObject {
        var builder = DataObject.Builder()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { builder.append(name, value) }
        do throws(JSONError) { return try DataObject(document: builder.finish().bytes) } catch {
            throw ObjectStoreError(
                .queryInvalid, "A field's name is not of the allowed form.", hint: "Names do not begin with `$`.")
        }
    }
}

extension StampedStore: ObjectRequester {}

/// How a sync goes on after the server has refused a request.
private struct StampedCourse {
    private let limit: Int
    private var halved: Int?
    /// The edit that was refused alone, and what was said. A request may be cut on its way, so it is sent twice.
    private var suspect: (edit: StampedEdit, error: ObjectStoreError, times: Int)?
    /// A caller who may only read is told what has changed all the same, and gets this error at the end.
    private(set) var denial: ObjectStoreError?

    init(limit: Int) { self.limit = limit }

    /// How many edits the next request may have.
    var editLimit: Int { denial != nil || isProbing ? 0 : halved ?? limit }

    private var isProbing: Bool { (suspect?.times ?? 0) > 1 }

    /// Decides on the next request after an error; throws one that no other request can mend.
    mutating func meet(_ error: ObjectStoreError, _ question: StampedQuestion) throws {
        switch (error.code, question.edits.count) {
        case (.forbidden, 1...): denial = error
        // An edit that no request goes through with must not stop the others: halving finds it.
        case (.requestRefused, 2...): halved = question.edits.count / 2
        case (.requestRefused, 1):
            let edit = question.edits[0]
            suspect = (edit, error, suspect?.edit.number == edit.number ? (suspect?.times ?? 0) + 1 : 1)
        default: throw error
        }
    }

    /// A request went through: without the suspect, if there is one that was refused twice.
    mutating func takeSuspect() -> (StampedEdit, ObjectStoreError)? {
        let found = isProbing ? suspect.map { ($0.edit, $0.error) } : nil
        halved = found == nil ? halved.map { min($0 * 2, limit) } : nil
        suspect = nil
        return found
    }
}

/// An item as it stands on this device.
public struct StampedItem: Hashable, Sendable, Identifiable {
    /// The entity's name.
    public let entity: String
    /// Its id within the entity.
    public let id: RecordID
    /// Its fields.
    public let fields: [String: Value]

    /// Makes an item, for previews and tests.
    public init(entity: String, id: RecordID, fields: [String: Value]) {
        self.entity = entity
        self.id = id
        self.fields = fields
    }
}

/// An edit that the server did not take.
public struct StampedRefusal: Hashable, Sendable {
    /// The entity's name.
    public let entity: String
    /// The item's id.
    public let id: RecordID
    /// The fields that were set; `nil` for a delete.
    public let fields: [String: Value]?
    /// A code of the protocol's rejection list, such as `record_too_large`.
    public let code: String
    /// A sentence that says why the server did not take it.
    public let detail: String

    /// Makes a refusal, for previews and tests.
    public init(entity: String, id: RecordID, fields: [String: Value]? = nil, code: String, detail: String) {
        self.entity = entity
        self.id = id
        self.fields = fields
        self.code = code
        self.detail = detail
    }
}

extension StampedRefusal: CustomStringConvertible {
    /// A sentence for a log, without the fields: `word tide was not taken: It is too large. (record_too_large)`.
    public var description: String { "\(entity) \(id) was not taken: \(detail) (\(code))".printable }
}

/// The result of a sync.
public struct StampedReport: Hashable, Sendable {
    /// Edits that were sent.
    public var sent = 0
    /// Items that came, of which some may be the winners over edits of this device's.
    public var received = 0

    /// Makes a report, for previews and tests; without arguments, one of nothing.
    public init(sent: Int = 0, received: Int = 0) {
        self.sent = sent
        self.received = received
    }
}

extension StampedReport: CustomStringConvertible {
    /// A sentence for a log or a screen: `Sent 3 edits, received 1 item.`
    public var description: String { "Sent \(counted(sent, "edit")), received \(counted(received, "item"))." }
}
