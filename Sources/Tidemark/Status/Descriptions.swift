import Foundation
import TidemarkWire

// The entries of the engine's lists as sentences, for a console. They hold what is in the app's rows.

extension Conflict: CustomStringConvertible {
    /// Such as `todo t1, resolved by lastWriteWins: title 'a' here, 'b' elsewhere, 'b' stands.`
    public var description: String {
        let deleted = isDeletedElsewhere ? ", deleted elsewhere" : isDelete ? ", deleted here" : ""
        let columns = fields.map { field in
            let mine = field.mine?.description ?? (isDelete ? "deleted" : "nothing")
            let theirs = field.theirs?.description ?? (isDeletedElsewhere ? "deleted" : "nothing")
            let result = field.result.map { "\($0) stands" } ?? (isOpen ? "undecided" : "deleted")
            return "\(field.name) \(mine) here, \(theirs) elsewhere, \(result)"
        }
        let how = isOpen ? "open" : "resolved by \(rule.rawValue)"
        return "\(entity) \(record), \(how)\(deleted)\(columns.isEmpty ? "" : ": ")\(columns.joined(separator: "; "))."
    }
}

extension RejectedOperation: CustomStringConvertible {
    /// Such as `Insert of todo t1 (title 'a'): It is too large. (record_too_large) Shorten it. 1 edit waits for it.`
    public var description: String {
        let kind = isDelete ? "Delete" : isInsert ? "Insert" : "Edit"
        let waits = dependants.count == 1 ? "1 edit waits for it." : "\(dependants.count) edits wait for it."
        let parts = ["\(kind) of \(entity) \(record)\(columns(fields)): \(detail) (\(code))", hint]
        return (parts + (dependants.isEmpty ? [] : [waits])).filter { !$0.isEmpty }.joined(separator: " ")
    }
}

extension OrphanedEdit: CustomStringConvertible {
    /// Such as `Update of todo t1 in w:1 (title 'a') was not sent.`
    public var description: String {
        "\(kind.rawValue.capitalized) of \(entity) \(record) in \(scope)\(columns(fields)) was not sent."
            + (reason.map { " \($0)" } ?? "")
    }
}

extension QuarantinedRecord: CustomStringConvertible {
    /// Such as `todo t1 (title 'a') is kept outside its table: …`
    public var description: String { "\(entity) \(record)\(columns(fields)) is kept outside its table: \(reason)" }
}

extension DeletedRecord: CustomStringConvertible {
    /// Such as `todo t1 (title 'a') was deleted elsewhere, heard of at 2027-01-15T08:00:00Z.`
    public var description: String {
        "\(entity) \(record)\(columns(fields)) was deleted elsewhere, heard of at \(deletedAt.formatted(.iso8601))."
    }
}

private func columns(_ fields: [String: Value]) -> String {
    let parts = fields.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
    return parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
}
