import TidemarkWire

/// One page of a list, as far as a store wants to know it.
struct ObjectPage: Sendable {
    var objects: [StoredObject]
    /// The ids to drop.
    var deleted: [RecordID] = []
    /// The time that the next fetch may send.
    var stamp: Int64
    /// Where the next page begins; `nil` behind the last.
    var cursor: String?

    /// - Parameter isDelta: whether the request said what the store holds. An answer without ids to drop has not heard
    ///   it then, and is no delta.
    init(_ response: TransportResponse, isDelta: Bool) throws(ObjectStoreError) {
        guard let text = response.header(DialectHeader.stamp), let stamp = Int64(text) else {
            throw .unusable("The list has no `\(DialectHeader.stamp)`.")
        }
        self.stamp = stamp
        do throws(JSONError) {
            objects = try StoredObject.list(response.body)
            if isDelta { deleted = try Self.ids(response.header(DialectHeader.deltaDeleted) ?? "") }
        } catch {
            throw .unusable("The list is not what this server sends: \(error.reason.rawValue).")
        }
        cursor = try response.header("Link").map { text throws(ObjectStoreError) in try Self.cursor(link: text) }
    }

    private static func ids(_ header: String) throws(JSONError) -> [RecordID] {
        try Array(header.utf8).withUnsafeBytes { bytes in
            Result { () throws(JSONError) in
                var reader = JSONReader(bytes)
                var ids: [RecordID] = []
                try reader.enterArray()
                // A text that is no id was never stored.
                while try reader.nextElement() { if let id = RecordID(try reader.readString()) { ids.append(id) } }
                try reader.finish()
                return ids
            }
        }.get()
    }

    /// The cursor in `<address?query>; rel="next"`. The address itself is not followed: it could lead anywhere.
    private static func cursor(link: String) throws(ObjectStoreError) -> String {
        let query = String(link.prefix { $0 != ">" }.drop { $0 != "?" }.dropFirst())
        let members = (try? PercentEncoding.members(ofQuery: query)) ?? []
        guard link.hasPrefix("<"), link.contains("rel=\"next\""),
            let cursor = members.first(where: { $0.name == "cursor" })?.value
        else { throw .unusable("The list's `Link` holds no cursor.") }
        return cursor
    }
}
