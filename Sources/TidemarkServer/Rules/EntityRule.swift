import TidemarkCore
public import TidemarkWire

public import struct Foundation.Date

/// A rule of the operator's own for one entity: it looks at each edit that a device sends and takes it, changes it, or
/// refuses it with a reason.
///
/// ```swift
/// EntityRule("task") { edit in
///     guard let title = edit.mine["title"] else { return .accept }
///     guard title != "" else { return .reject(code: "title_missing", detail: "A task needs a title.") }
///     return .accept
/// }
/// ```
///
/// It runs inside the transaction that commits the edit, while every other writer waits: keep it quick, and let it only
/// compute. The same edit has to be judged alike whenever it is asked about. A rule that throws refuses the edit with
/// the code `rule_failed`.
public struct EntityRule: Sendable {
    /// The entity whose edits it looks at.
    public let entity: String
    /// Whether it also looks at what the server's own program commits; a refusal is a ``CommitError`` there.
    public let includesCommits: Bool
    let decide: @Sendable (Edit) throws -> Decision

    /// Makes a rule.
    ///
    /// - Parameters:
    ///   - entity: the entity whose edits it looks at.
    ///   - includingCommits: whether ``SyncServer/commit(to:_:)`` is held to it too.
    ///   - decide: what becomes of an edit. It is asked on the thread of the transaction.
    public init(
        _ entity: String, includingCommits: Bool = false,
        decide: @escaping @Sendable (Edit) throws -> Decision
    ) {
        self.entity = entity
        includesCommits = includingCommits
        self.decide = decide
    }

    /// The decision on an edit.
    public enum Decision: Hashable, Sendable {
        /// It goes on to the entity's conflict policy.
        case accept
        /// It goes on, but these fields become what is said here, whatever was sent and whatever the policy would say.
        /// Not for deletes and events.
        case set([String: Value])
        /// It is refused for good.
        ///
        /// - Parameters:
        ///   - code: for programs: lower-case letters, digits and `_`, at most 63, a letter first, and none of the
        ///     protocol's own codes.
        ///   - detail: for people, what is wrong; it travels to the device, up to 500 bytes of it.
        ///   - hint: what can be done about it.
        case reject(code: String, detail: String, hint: String = "")
    }

    /// The sender of an edit.
    public struct Caller: Hashable, Sendable {
        /// The token's `sub`; empty for the server's own program.
        public var principal: String
        /// The device; empty for the server's own program.
        public var client: String
        /// Whether this is one of the operator's own programs.
        public var isService: Bool

        /// Makes a caller, for tests of a rule.
        public init(principal: String = "", client: String = "", isService: Bool = false) {
            self.principal = principal
            self.client = client
            self.isService = isService
        }
    }

    /// An edit as a rule sees it.
    public struct Edit: Sendable {
        /// Where the record belongs: of an entity in a sub-scope that one, whose scope is `scope.parent`.
        public var scope: Scope
        /// The record's entity.
        public var entity: String
        /// The record.
        public var id: RecordID
        /// Whether the record is to be deleted.
        public var isDelete: Bool
        /// The fields as they were sent; those that the edit leaves alone are not among them.
        public var mine: Fields
        /// The record as it stands; `nil` where there is none, or none any more.
        public var current: Fields?
        /// The fields of `current` that the editor knew as they are. A field that is missing has been written since by
        /// somebody else.
        public var base: Fields
        /// The sender of the edit.
        public var caller: Caller
        /// The server's time.
        public var moment: Date

        /// Makes an edit, for tests of a rule.
        public init(
            scope: Scope, entity: String, id: RecordID, isDelete: Bool = false, mine: Fields = [:],
            current: Fields? = nil, base: Fields = [:], caller: Caller, moment: Date
        ) {
            self.scope = scope
            self.entity = entity
            self.id = id
            self.isDelete = isDelete
            self.mine = mine
            self.current = current
            self.base = base
            self.caller = caller
            self.moment = moment
        }

        /// The record as it would be with all of the edit's fields taken; empty for a delete.
        public var proposed: Fields { isDelete ? [:] : (current ?? [:]).overlaid(with: mine) }

        /// Whether somebody else has written the field since the editor saw it.
        public func isStale(_ field: String) -> Bool { current?[field] != nil && base[field] == nil }
    }
}

/// The rules of one entity, asked about one edit.
struct Ruling {
    let rules: [EntityRule]
    let scope: Scope
    let caller: EntityRule.Caller

    enum Finding {
        /// The edit goes on, with these fields decided.
        case decided(DataObject)
        case refused(Verdict.Refusal)
    }

    private static let textLimit = 500

    func judge(
        _ operation: Operation, _ record: RecordID, current: Merge.Current?, declaration: EntityDeclaration,
        seen: Set<Version>, at moment: Int64
    ) -> Finding {
        guard !Self.isAmbiguous(operation.fields, beside: current?.data) else { return .refused(Self.ambiguous) }
        let edit = edit(operation, record, current, declaration, seen, moment)
        var decided: EntityRule.Fields = [:]
        for rule in rules {
            let decision: EntityRule.Decision
            do { decision = try rule.decide(edit) } catch {
                return .refused(Self.failed("The rule for \(operation.entity) failed (\(type(of: error)))."))
            }
            switch decision {
            case .accept: continue
            case .reject(let code, let detail, let hint): return .refused(Self.refusal(code, detail, hint))
            case .set(let fields):
                guard !edit.isDelete, declaration.kind == .state else {
                    return .refused(Self.failed("The rule for \(operation.entity) sets fields where there are none."))
                }
                guard fields.keys.allSatisfy({ !$0.hasPrefix("$") }) else {
                    return .refused(Self.failed("The rule for \(operation.entity) sets a field of a reserved name."))
                }
                decided = decided.overlaid(with: EntityRule.Fields(fields))
            }
        }
        let set = decided.data(as: current?.data ?? .empty, or: operation.fields)
        guard !Self.isAmbiguous(set, beside: operation.fields) else { return .refused(Self.ambiguous) }
        return .decided(set)
    }

    /// Whether two fields that differ in the bytes of their names would be one field to a rule, which sees them as
    /// strings: it could look at one and let the other pass.
    private static func isAmbiguous(_ fields: DataObject, beside others: DataObject?) -> Bool {
        var spellings: [String: ArraySlice<UInt8>] = [:]
        for field in fields.fields {
            if spellings.updateValue(fields.name(field), forKey: fields.nameString(field)) != nil { return true }
        }
        guard let others else { return false }
        return others.fields.contains { field in
            spellings[others.nameString(field)].map { $0 != others.name(field) } ?? false
        }
    }

    private static let ambiguous = Verdict.Refusal(
        code: RejectionCode.ruleFailed, detail: "Two fields of the record have names that a rule cannot tell apart.",
        hint: "Give each field one spelling.")

    private func edit(
        _ operation: Operation, _ record: RecordID, _ current: Merge.Current?, _ declaration: EntityDeclaration,
        _ seen: Set<Version>, _ moment: Int64
    ) -> EntityRule.Edit {
        let mine = operation.fields.values.filter { caller.isService || !declaration.isServerField($0.key) }
        var base: EntityRule.Fields = [:]
        if let current, let data = current.data {
            for field in data.fields {
                let name = data.name(field)
                let version = current.fieldVersions[name]
                let known = operation.base(ofField: name).map { version <= $0 } ?? false
                if known || seen.contains(version) {
                    base[data.nameString(field)] = data.decoded(field)
                }
            }
        }
        return EntityRule.Edit(
            scope: scope, entity: operation.entity, id: record, isDelete: operation.kind == .delete,
            mine: EntityRule.Fields(mine), current: current?.data.map { EntityRule.Fields($0.values) }, base: base,
            caller: caller, moment: Date(milliseconds: moment))
    }

    private static func refusal(_ code: String, _ detail: String, _ hint: String) -> Verdict.Refusal {
        guard RejectionCode.isOperators(code) else {
            return failed("The rule refused the edit with a code that it may not use.")
        }
        return Verdict.Refusal(code: code, detail: shortened(detail), hint: shortened(hint))
    }

    private static func failed(_ detail: String) -> Verdict.Refusal {
        Verdict.Refusal(
            code: RejectionCode.ruleFailed, detail: detail,
            hint: "Tell the operator of the server; the edit can be tried again once the rule is mended.")
    }

    private static func shortened(_ text: String) -> String {
        guard text.utf8.count > textLimit else { return text }
        var short = text
        while short.utf8.count > textLimit { short.removeLast() }
        return short
    }
}
