/// The operator's declaration of one entity: stated once, on the server, and told to every device.
public struct EntityDeclaration: Hashable, Sendable {
    /// Whether a record has one present state, or every entry counts.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Records with a present state; a delta carries only the newest.
        case state
        /// Append-only entries; every one is kept.
        case events
    }

    /// Which way an entity's changes travel.
    public enum Direction: String, Hashable, Sendable, CaseIterable {
        /// To the server and back.
        case both
        /// From the server only.
        case pull
        /// To the server only.
        case push
    }

    /// The side that makes the ids of new records.
    public enum IDSource: String, Hashable, Sendable, CaseIterable {
        /// The device, once and for all: the normal way.
        case client
        /// The server; until its answer comes, the device uses a temporary id.
        case server
    }

    /// The entity's name, which is the table's name on the device.
    public var name: String
    /// State or events.
    public var kind: Kind
    /// How conflicts of edits that did not know of each other are resolved.
    public var conflict: ConflictPolicy
    /// How conflicts of a delete and an edit that did not know of each other are resolved.
    public var deletes: DeletePolicy
    /// Fields that only the server's own programs may write (E4).
    public var serverFields: [String]
    /// Which way changes travel.
    public var direction: Direction
    /// The class in which its records come first or last in a snapshot; lower classes come earlier (A18).
    public var priority: Int
    /// The values that a new record gets in fields that its device did not send: a field that newer apps no longer have
    /// keeps a value for the older ones through its deprecation window (A19).
    public var defaults: [String: Value]
    /// Fields of large text that travel as patches both ways where both sides know the text before the edit (A9).
    public var patch: [String]
    /// The side that makes the ids of new records.
    public var ids: IDSource
    /// How many records one user may delete before the server asks whether that is meant; `nil`: any number.
    public var brake: DeleteBrake?
    /// The sub-scope of each scope that holds its records, with a log and checkpoints of its own (A3); `nil`: the
    /// scope itself.
    public var subscope: String?
    /// Fields that name blobs: each value is null or a ``BlobReference`` (A12). A server collects the blobs that no
    /// such field names.
    public var attachments: [String]

    /// Makes a declaration.
    public init(
        _ name: String, kind: Kind = .state, conflict: ConflictPolicy = .mergeFields, serverFields: [String] = [],
        direction: Direction = .both, priority: Int = 1, deletes: DeletePolicy = .win,
        defaults: [String: Value] = [:], patch: [String] = [], ids: IDSource = .client, brake: DeleteBrake? = nil,
        subscope: String? = nil, attachments: [String] = []
    ) {
        self.subscope = subscope
        self.attachments = attachments
        self.brake = brake
        self.deletes = deletes
        self.defaults = defaults
        self.patch = patch
        self.ids = ids
        self.priority = priority
        self.name = name
        self.kind = kind
        self.conflict = conflict
        self.serverFields = serverFields
        self.direction = direction
    }

    /// Records with a present state.
    public static func state(
        _ name: String, conflict: ConflictPolicy = .mergeFields, serverFields: [String] = [],
        direction: Direction = .both, priority: Int = 1, deletes: DeletePolicy = .win,
        defaults: [String: Value] = [:], patch: [String] = [], ids: IDSource = .client, brake: DeleteBrake? = nil,
        subscope: String? = nil, attachments: [String] = []
    ) -> EntityDeclaration {
        EntityDeclaration(
            name, conflict: conflict, serverFields: serverFields, direction: direction, priority: priority,
            deletes: deletes, defaults: defaults, patch: patch, ids: ids, brake: brake, subscope: subscope,
            attachments: attachments)
    }

    /// Append-only entries.
    public static func events(
        _ name: String, direction: Direction = .both, subscope: String? = nil, attachments: [String] = []
    ) -> EntityDeclaration {
        EntityDeclaration(name, kind: .events, direction: direction, subscope: subscope, attachments: attachments)
    }

    /// Whether only the server may write a field, in whichever case it is named.
    package func isServerField(_ name: String) -> Bool {
        serverFields.contains { Identifier.isSameName($0, name) }
    }

    /// The names of the fields that are declared one by one.
    package var fieldNames: [String] { serverFields + patch + attachments + defaults.keys.sorted() }
}

/// How conflicts of edits of one record that did not know of each other are resolved, on the server.
public enum ConflictPolicy: String, Hashable, Sendable, CaseIterable {
    /// Field by field; the same field on both sides goes to the later write. The default.
    case mergeFields
    /// The fields sent are taken, in server order.
    case lastWriteWins
    /// Field by field; the same field on both sides goes to the edit that was made later, as hybrid logical clocks
    /// tell, believed between the device's last sync and the server's now.
    case lastEditWins
    /// An edit of a field that somebody else has written meanwhile is not taken; the app decides.
    case manual
}

/// How conflicts of a delete and an edit of one record that did not know of each other are resolved.
public enum DeletePolicy: String, Hashable, Sendable, CaseIterable {
    /// The record stays deleted; the edit is refused, or listed as lost. The default.
    case win
    /// The record lives, with the edit; where it was deleted already, the edit revives it.
    case lose
}

/// How many records of an entity one user may delete in one scope, over a while, before the server takes no more
/// deletes that nobody has confirmed. Rows that move to another scope do not count.
public struct DeleteBrake: Hashable, Sendable {
    /// Records that one user may delete without a confirmation.
    public var rows: Int
    /// Over how long they are counted.
    public var window: Duration

    /// Makes a brake.
    public init(rows: Int = 100, window: Duration = .seconds(60 * 60)) {
        self.rows = rows
        self.window = window
    }
}

/// All that the operator declared, as `GET /sync/declarations` gives it.
package struct Declarations: Hashable, Sendable {
    package var isStrict: Bool
    package var entities: [EntityDeclaration]

    package init(isStrict: Bool = false, entities: [EntityDeclaration] = []) {
        self.isStrict = isStrict
        self.entities = entities.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }

    package subscript(_ entity: String) -> EntityDeclaration? {
        entities.first { Identifier.isSameName($0.name, entity) }
    }

    /// The declaration of an entity, or the defaults for one that is not declared.
    package func entity(_ name: String) -> EntityDeclaration { self[name] ?? EntityDeclaration(name) }

    /// Where records of an entity lie within a scope: in the scope itself, or in the entity's sub-scope;
    /// `nil` where the names are too long together.
    package func place(of entity: String, in scope: Scope) -> Scope? {
        scope.appending(subscope: self.entity(entity).subscope)
    }

    package func body() -> [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.raw("{\"strict\":")
        writer.bool(isStrict)
        writer.raw(",\"entities\":{")
        for (index, entity) in entities.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(entity.name)
            writer.raw(":{\"kind\":")
            writer.string(entity.kind.rawValue)
            writer.member("conflict", entity.conflict.rawValue)
            writer.member("deletes", entity.deletes.rawValue)
            writer.member("direction", entity.direction.rawValue)
            writer.member("priority", Int64(entity.priority))
            writer.member("ids", entity.ids.rawValue)
            writer.member("serverFields", entity.serverFields)
            writer.member("patch", entity.patch)
            if let subscope = entity.subscope { writer.member("subscope", subscope) }
            if !entity.attachments.isEmpty { writer.member("attachments", entity.attachments) }
            if let brake = entity.brake {
                writer.raw(",\"brake\":{\"rows\":")
                writer.integer(Int64(brake.rows))
                writer.member("window", brake.window.wholeSeconds)
                writer.raw("}")
            }
            if !entity.defaults.isEmpty {
                var defaults = DataObject.Builder()
                for (name, value) in entity.defaults.sorted(by: { $0.key < $1.key }) { defaults.append(name, value) }
                writer.memberName("defaults")
                writer.raw(defaults.finish().bytes)
            }
            writer.raw("}")
        }
        writer.raw("}}")
        return writer.bytes
    }

    package init(from bytes: UnsafeRawBufferPointer) throws(JSONError) {
        self.init()
        var reader = JSONReader(bytes)
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "strict": isStrict = try reader.readBool()
            case "entities":
                try reader.enterObject()
                while let entity = try reader.nextMember() {
                    entities.append(try EntityDeclaration(reader.string(entity), from: &reader))
                }
            default: try reader.skip()
            }
        }
        try reader.finish()
    }
}

extension EntityDeclaration {
    /// Unknown members and values of a newer server read as the defaults (A19).
    fileprivate init(_ name: String, from reader: inout JSONReader) throws(JSONError) {
        self.init(name)
        try reader.enterObject()
        while let member = try reader.nextMember() {
            switch reader.string(member) {
            case "kind": kind = Kind(rawValue: try reader.readString()) ?? .state
            case "conflict": conflict = ConflictPolicy(rawValue: try reader.readString()) ?? .mergeFields
            case "deletes": deletes = DeletePolicy(rawValue: try reader.readString()) ?? .win
            case "direction": direction = Direction(rawValue: try reader.readString()) ?? .both
            case "priority": priority = Int(truncatingIfNeeded: try reader.readInteger())
            case "ids": ids = IDSource(rawValue: try reader.readString()) ?? .client
            case "serverFields": serverFields = try reader.readStrings()
            case "patch": patch = try reader.readStrings()
            case "brake": brake = try DeleteBrake(from: &reader)
            case "subscope": subscope = try reader.readString()
            case "attachments": attachments = try reader.readStrings()
            case "defaults":
                let object = try DataObject(from: &reader)
                for field in object.fields {
                    defaults[object.nameString(field)] = object.value(object.nameString(field))
                }
            default: try reader.skip()
            }
        }
    }
}

extension DeleteBrake {
    fileprivate init(from reader: inout JSONReader) throws(JSONError) {
        self.init()
        try reader.enterObject()
        while let member = try reader.nextMember() {
            switch reader.string(member) {
            case "rows": rows = Int(truncatingIfNeeded: try reader.readInteger())
            case "window": window = .seconds(try reader.readInteger())
            default: try reader.skip()
            }
        }
    }
}

extension JSONWriter {
    /// Appends `,"name":["a","b"]`.
    fileprivate mutating func member(_ name: StaticString, _ texts: [String]) {
        memberName(name)
        raw("[")
        for (index, text) in texts.enumerated() {
            if index > 0 { raw(",") }
            string(text)
        }
        raw("]")
    }
}

extension JSONReader {
    fileprivate mutating func readStrings() throws(JSONError) -> [String] {
        var texts: [String] = []
        try enterArray()
        while try nextElement() { texts.append(try readString()) }
        return texts
    }
}
