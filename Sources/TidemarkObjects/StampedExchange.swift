import Tidemark
import TidemarkWire

/// An edit that waits, as it is kept and sent.
struct StampedEdit: Sendable {
    var entity: String
    var id: RecordID
    var stamp: Int64
    /// `nil`: deleted.
    var data: DataObject?
    /// Grows with each edit of the store: one that was made while its item was on its way has another.
    var number: Int64
    /// The item's data before it was deleted.
    var former: DataObject?
}

/// The content of one request.
struct StampedQuestion: Sendable {
    var clientStamp: Int64
    /// While the first sync has not come to its end.
    var began: Int64?
    var edits: [StampedEdit]

    func body(limit: Int) -> [UInt8] {
        var writer = JSONWriter(capacity: edits.reduce(128) { $0 + 96 + ($1.data?.bytes.count ?? 0) })
        writer.raw("{\"clientStamp\":")
        writer.integer(clientStamp)
        if let began { writer.member("began", began) }
        writer.member("limit", Int64(limit))
        writer.raw(",\"items\":[")
        for (index, edit) in edits.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.raw("{\"entity\":")
            writer.string(edit.entity)
            writer.member("id", edit.id.text)
            writer.member("itemUpdateStamp", edit.stamp)
            if let data = edit.data {
                writer.raw(",\"data\":")
                writer.raw(data.bytes)
                writer.raw("}")
            } else {
                writer.raw(",\"deleted\":true}")
            }
        }
        writer.raw("]}")
        return writer.bytes
    }
}

/// The server's answer to a request.
struct StampedAnswer: Sendable {
    struct Item: Sendable {
        var entity = ""
        var id: RecordID
        /// `nil`: deleted.
        var data: DataObject?
    }

    struct Refusal: Sendable {
        var entity = ""
        var id: RecordID
        var code = ""
        var detail = ""
        /// The item has lost, and the answer had no room for the winner: it is sent again.
        var isToBeSentAgain: Bool { code == RejectionCode.pageFull }
    }

    var items: [Item] = []
    var refused: [Refusal] = []
    var hasMore = false
    var clientStamp: Int64
    var began: Int64?

    init(document: [UInt8]) throws(JSONError) {
        self = try document.reading { (reader: inout JSONReader) throws(JSONError) -> StampedAnswer in
            let answer = try StampedAnswer(from: &reader)
            try reader.finish()
            return answer
        }
    }

    private init(from reader: inout JSONReader) throws(JSONError) {
        var stamp: Int64?
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "items":
                try reader.enterArray()
                while try reader.nextElement() { items.append(try Item(from: &reader)) }
            case "refused":
                try reader.enterArray()
                while try reader.nextElement() { refused.append(try Refusal(from: &reader)) }
            case "hasMore": hasMore = try reader.readBool()
            case "clientStamp": stamp = try reader.readInteger()
            case "began": began = try reader.readInteger()
            default: try reader.skip()
            }
        }
        guard let stamp else { throw JSONError(.missingMember, at: reader.index) }
        clientStamp = stamp
    }
}

extension StampedAnswer.Item {
    fileprivate init(from reader: inout JSONReader) throws(JSONError) {
        var (data, isDeleted): (DataObject?, Bool) = (nil, false)
        let start = reader.index
        let (entity, id) = try reader.readNamed { name, reader throws(JSONError) in
            switch name {
            case "data": data = try DataObject(from: &reader)
            case "deleted": isDeleted = try reader.readBool()
            default: try reader.skip()
            }
        }
        guard (data != nil) != isDeleted else { throw JSONError(.missingMember, at: start) }
        self.init(entity: entity, id: id, data: data)
    }
}

extension StampedAnswer.Refusal {
    fileprivate init(from reader: inout JSONReader) throws(JSONError) {
        var (code, detail) = ("", "")
        let start = reader.index
        let (entity, id) = try reader.readNamed { name, reader throws(JSONError) in
            switch name {
            case "code": code = try reader.readString()
            case "detail": detail = try reader.readString()
            default: try reader.skip()
            }
        }
        guard !code.isEmpty else { throw JSONError(.missingMember, at: start) }
        self.init(entity: entity, id: id, code: code, detail: detail)
    }
}

extension JSONReader {
    /// Reads an object that names an item, and gives every other member to `read`.
    fileprivate mutating func readNamed(
        _ read: (String, inout JSONReader) throws(JSONError) -> Void
    ) throws(JSONError) -> (entity: String, id: RecordID) {
        var (entity, id): (String, RecordID?) = ("", nil)
        let start = index
        try enterObject()
        while let name = try nextMember() {
            switch string(name) {
            case "entity": entity = try readString()
            case "id": id = RecordID(try readString())
            case let other: try read(other, &self)
            }
        }
        guard let id, !entity.isEmpty else { throw JSONError(.missingMember, at: start) }
        return (entity, id)
    }
}

extension DataObject {
    /// The same fields, each NULL.
    var cleared: DataObject {
        var builder = Builder()
        for field in fields { builder.append(nameString(field), .null) }
        return builder.finish()
    }

    /// Reads a document that is one record's fields, as the server does.
    init(document: [UInt8]) throws(JSONError) {
        self = try document.reading { (reader: inout JSONReader) throws(JSONError) -> DataObject in
            let data = try DataObject(from: &reader)
            try reader.finish()
            return data
        }
    }
}
