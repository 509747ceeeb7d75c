/// Why some bytes are not the JSON that was expected, and where.
package struct JSONError: Error, Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable {
        case unexpectedEnd = "the text ends too early"
        case unexpectedCharacter = "an unexpected character"
        case invalidNumber = "a number that is out of range or not written as JSON writes numbers"
        case invalidString = "a string with a raw control character or a broken escape"
        case invalidUTF8 = "bytes that are not UTF-8"
        case tooDeep = "nesting deeper than 64 levels"
        case trailingBytes = "something after the end of the document"
        case wrongType = "a value of the wrong type"
        case duplicateMember = "a member given twice"
        case missingMember = "a required member is missing"
        case reservedMember = "a member named '$…' that is not one of $int, $real and $blob"
        case invalidIdentifier = "a name that is not of the allowed form"
        case tooManyMembers = "more members, or entries of a list, than one may have"
        case outOfRange = "a number outside its limits"
        case tooMany = "more than a request may hold"
    }

    package var reason: Reason
    /// Byte offset in the document.
    package var offset: Int
    /// How many there may be, where there are too many.
    package var limit: Int?
    /// The member, as a path from the top: `operations[3].fields.title`.
    package var path: String = ""

    package init(_ reason: Reason, at offset: Int, limit: Int? = nil, path: String = "") {
        self.reason = reason
        self.offset = offset
        self.limit = limit
        self.path = path
    }

    /// The same error, seen from one level further up.
    package func inside(_ member: String) -> JSONError {
        var error = self
        error.path = path.isEmpty ? member : path.hasPrefix("[") ? member + path : member + "." + path
        return error
    }

    package func inside(index: Int) -> JSONError { inside("[\(index)]") }
}
