import TidemarkWire

/// How clients of other systems know an entity: by which path, in which scope, and with which names (Protocol.md).
///
/// ```swift
/// var bookmarks = EntityPath("bookmarks", of: "bookmark")
/// (bookmarks.id, bookmarks.event, bookmarks.scope) = ("clientBookmarkId", "bookmarks_changed", "user:{sub}")
/// ```
public struct EntityPath: Hashable, Sendable {
    /// How a value is spelled in JSON.
    public enum Form: String, Hashable, Sendable, CaseIterable {
        /// As everywhere on the wire.
        case plain
        /// The integers 1 and 0 as `true` and `false`.
        case boolean
        /// A JSON document that the field holds as a text, as that document.
        case json
    }

    /// How a field is spelled in JSON.
    public struct Member: Hashable, Sendable {
        /// The member's name.
        public var name: String
        /// How its value is spelled.
        public var form: Form

        /// Makes a member.
        public init(_ name: String, as form: Form = .plain) {
            self.name = name
            self.form = form
        }
    }

    /// Paths at the root that no entity takes, whatever it is called.
    public static let reserved: Set<String> = ["sync", "rest", "health", "metrics", "console"]

    /// The name in `/rest/{path}` and `/{path}/delta`.
    public var path: String
    /// The entity behind it.
    public var entity: String
    /// The scope of a request that names none; `{sub}` stands for the token's `sub`. `nil`: the token's only scope.
    public var scope: String?
    /// The member that holds a record's id.
    public var id = "id"
    /// The member of `/rest` that says when a record was last written, in milliseconds since 1970.
    public var lastModified = "lastModifiedAt"
    /// The member of a delta that says the same as a date.
    public var updatedAt = "updatedAt"
    /// The member of a tombstone that says when the record was deleted, as a date.
    public var deletedAt = "deletedAt"
    /// Fields with another name or another form than their own, by the field's name.
    public var members: [String: Member] = [:]
    /// The name of a nudge in `/{path}/events`.
    public var event = "changes"

    /// Makes a path to the entity of that name, or of another one.
    public init(_ path: String, of entity: String? = nil) {
        self.path = path
        self.entity = entity ?? path
    }

    /// Whether the path may be one: of the form of an entity's name, without a slash, and not taken.
    public static func isPath(_ text: String) -> Bool {
        Identifier.isEntity(text) && !text.utf8.contains(UInt8(ascii: "/")) && !reserved.contains(text.lowercased())
    }
}
