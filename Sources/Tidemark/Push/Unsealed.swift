import TidemarkWire

/// A record that is to be sealed.
struct Unsealed {
    var table: RecordTable
    var key: [Cell]
    var id: RecordID
    /// Whether it is in the group of the record that refers to it.
    var goesAlong = false
    /// The record as its mark found it, until anything else is sealed.
    var found: RecordTable.Marked?

    var name: RecordName { RecordName(entity: table.shape.name, record: id.text) }
}
