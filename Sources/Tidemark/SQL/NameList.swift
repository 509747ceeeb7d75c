import TidemarkWire

/// A list of names as one text of the file: a JSON array, since a name may hold any character.
struct NameList: Hashable {
    var list: [String]

    init(_ list: [String]) { self.list = list }

    init(_ text: String) {
        // A file of an older version has them behind each other, with blanks between; no name could hold one.
        guard text.hasPrefix("[") else {
            list = text.split(separator: " ").map(String.init)
            return
        }
        let list = try? Array(text.utf8).reading { (reader: inout JSONReader) throws(JSONError) -> [String] in
            var list: [String] = []
            try reader.enterArray()
            while try reader.nextElement() { list.append(try reader.readString()) }
            return list
        }
        self.list = list ?? []
    }

    var text: String {
        var writer = JSONWriter(capacity: 64)
        writer.raw("[")
        for (index, name) in list.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(name)
        }
        writer.raw("]")
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
