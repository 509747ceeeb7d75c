import TidemarkWire

/// The question of a device with two stamps (D1): it sends its edits, each with the time when it was made, and asks for
/// all that has changed since its last sync.
struct StampedRequest: Hashable, Sendable {
    struct Item: Hashable, Sendable {
        var entity = ""
        var record: RecordID
        /// When it was edited, by the device's clock, in milliseconds since 1970.
        var stamp: Int64 = 0
        /// `nil`: deleted.
        var data: DataObject?
    }

    /// The server's time at the last sync, in milliseconds since 1970; 0 for a device that has nothing.
    var clientStamp: Int64 = 0
    /// While the first sync has not come to its end: when it began, as the answer before has said.
    var began: Int64?
    var items: [Item] = []
    var limit: Int64?

    init(from bytes: UnsafeRawBufferPointer, itemLimit: Int) throws(JSONError) {
        var reader = JSONReader(bytes)
        var seen = MemberNames()
        var hasStamp = false
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader)
            let label = reader.string(name)
            do throws(JSONError) {
                switch label {
                case "clientStamp":
                    clientStamp = try reader.readInteger()
                    hasStamp = true
                case "began": began = try reader.readInteger()
                case "items": try readItems(from: &reader, limit: itemLimit)
                case "limit": limit = try reader.readInteger()
                default: try reader.skipUnknown()
                }
            } catch { throw error.inside(label) }
        }
        try reader.finish()
        guard hasStamp else { throw JSONError(.missingMember, at: 0).inside("clientStamp") }
    }

    private mutating func readItems(from reader: inout JSONReader, limit: Int) throws(JSONError) {
        try reader.enterArray()
        while try reader.nextElement() {
            guard items.count < limit else { throw JSONError(.tooMany, at: reader.index, limit: limit) }
            items.append(try Item(from: &reader))
        }
    }
}

extension StampedRequest.Item {
    fileprivate init(from reader: inout JSONReader) throws(JSONError) {
        let start = reader.index
        var seen = MemberNames()
        var record: RecordID?
        var (stamp, isDeleted): (Int64?, Bool) = (nil, false)
        var (entity, data): (String, DataObject?) = ("", nil)
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader)
            let label = reader.string(name)
            do throws(JSONError) {
                switch label {
                case "entity": entity = try reader.readIdentifier(Identifier.isEntity)
                case "id": record = RecordID(try reader.readIdentifier(Identifier.isRecordID))
                case "itemUpdateStamp": stamp = try reader.readInteger()
                case "data": data = try DataObject(from: &reader)
                case "deleted": isDeleted = try reader.readBool()
                default: try reader.skipUnknown()
                }
            } catch { throw error.inside(label) }
        }
        guard !entity.isEmpty else { throw JSONError(.missingMember, at: start).inside("entity") }
        guard let record else { throw JSONError(.missingMember, at: start).inside("id") }
        guard let stamp else { throw JSONError(.missingMember, at: start).inside("itemUpdateStamp") }
        guard (data != nil) != isDeleted else { throw JSONError(.missingMember, at: start).inside("data") }
        self.init(entity: entity, record: record, stamp: stamp, data: data)
    }
}
