/// How a field's text became another: splices of its UTF-8 bytes, and a mark of the result (Protocol.md).
package struct FieldPatch: Hashable, Sendable {
    /// `[at, delete, "insert"]`: at a place in the old text, bytes that go and bytes that come. As they came from the
    /// wire: whether they fit a text is for the one who applies them to say.
    package struct Splice: Hashable, Sendable {
        package var at: Int64
        package var deleted: Int64
        package var inserted: [UInt8]

        package init(at: Int64, deleted: Int64, inserted: [UInt8]) {
            self.at = at
            self.deleted = deleted
            self.inserted = inserted
        }
    }

    package var field: String
    package var splices: [Splice]
    package var hash: String

    package init(field: String, splices: [Splice], hash: String) {
        self.field = field
        self.splices = splices
        self.hash = hash
    }
}

// MARK: - On the wire

extension JSONWriter {
    /// Appends `[{"field":"body","splices":[[at,delete,"insert"]],"hash":"…"}]`.
    package mutating func patches(_ patches: [FieldPatch]) {
        raw("[")
        for (index, patch) in patches.enumerated() {
            raw(index == 0 ? "{\"field\":" : ",{\"field\":")
            string(patch.field)
            raw(",\"splices\":[")
            for (index, splice) in patch.splices.enumerated() {
                raw(index == 0 ? "[" : ",[")
                integer(splice.at)
                raw(",")
                integer(splice.deleted)
                raw(",")
                splice.inserted.withUnsafeBytes { string(utf8: $0) }
                raw("]")
            }
            raw("]")
            member("hash", patch.hash)
            raw("}")
        }
        raw("]")
    }
}

extension JSONReader {
    /// Reads an array of patches; a field that comes twice is refused.
    package mutating func readPatches() throws(JSONError) -> [FieldPatch] {
        var patches: [FieldPatch] = []
        var seen: Set<[UInt8]> = []
        try enterArray()
        while try nextElement() {
            let start = index
            guard patches.count < Limits.names else { throw JSONError(.tooManyMembers, at: start) }
            let patch = try readPatch()
            guard seen.insert(Array(patch.field.utf8)).inserted else {
                throw JSONError(.duplicateMember, at: start).inside(patch.field)
            }
            patches.append(patch)
        }
        return patches
    }

    private mutating func readPatch() throws(JSONError) -> FieldPatch {
        let start = index
        var patch = FieldPatch(field: "", splices: [], hash: "")
        var seen = MemberNames()
        try enterObject()
        while let name = try nextMember() {
            try seen.insert(name, of: self)
            if matches(name, "field") {
                patch.field = try readString()
            } else if matches(name, "splices") {
                try enterArray()
                while try nextElement() { patch.splices.append(try readSplice()) }
            } else if matches(name, "hash") {
                patch.hash = try readString()
            } else {
                try skip()
            }
        }
        guard !patch.field.isEmpty else { throw JSONError(.missingMember, at: start).inside("field") }
        return patch
    }

    private mutating func readSplice() throws(JSONError) -> FieldPatch.Splice {
        let start = index
        try enterArray()
        guard try nextElement() else { throw JSONError(.wrongType, at: start) }
        let at = try readInteger()
        guard try nextElement() else { throw JSONError(.wrongType, at: start) }
        let deleted = try readInteger()
        guard try nextElement() else { throw JSONError(.wrongType, at: start) }
        let text = try readText()
        let inserted = text.hasEscapes ? unescaped(text) : Array(bytes[text.range])
        guard try !nextElement() else { throw JSONError(.wrongType, at: start) }
        return FieldPatch.Splice(at: at, deleted: deleted, inserted: inserted)
    }
}

extension DataObject {
    /// A field's text as UTF-8, its escapes resolved; `nil` where the field is absent or no text.
    package func text(named name: ArraySlice<UInt8>) -> [UInt8]? {
        value(named: name).flatMap(Self.text)
    }

    fileprivate static func text(_ value: ArraySlice<UInt8>) -> [UInt8]? {
        guard value.first == UInt8(ascii: "\"") else { return nil }
        return value.withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            guard let text = try? reader.readText() else { return nil }
            return text.hasEscapes ? reader.unescaped(text) : Array(buffer[text.range])
        }
    }
}

extension FieldLookup {
    /// The same of one field among many.
    package func text(_ name: ArraySlice<UInt8>) -> [UInt8]? { self[name].flatMap(DataObject.text) }
}
