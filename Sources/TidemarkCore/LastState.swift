package import TidemarkWire

/// The last state of a deleted record. It is kept with the tombstone of an entity whose edits win over deletes, so that
/// an edit revives the whole record and not just the fields that it names.
package struct LastState: Hashable, Sendable {
    package var data: DataObject
    package var fieldVersions: FieldVersions
    /// When the delete was made, as its author's clock was believed; zero where no stamps are kept.
    package var deletedAt = EditStamp.zero

    package init(data: DataObject, fieldVersions: FieldVersions) {
        self.data = data
        self.fieldVersions = fieldVersions
    }

    /// Tells it from the versions of a live record's fields, which begin otherwise.
    private static let format: Int64 = -2

    package func stored() -> [UInt8] {
        var writer = ByteWriter()
        writer.integer(Self.format)
        writer.run(fieldVersions.encoded())
        writer.run(data.bytes)
        // The stamp comes last, and only if there is one: a reader of an older version stops before it.
        if deletedAt != .zero { writer.integer(deletedAt.packed) }
        return writer.bytes
    }

    /// `nil` for a tombstone that keeps nothing.
    package init?(stored: [UInt8]?) {
        guard let stored else { return nil }
        var reader = ByteReader(stored)
        guard reader.integer() == Self.format, let versions = reader.run(), let bytes = reader.run(),
            let data = try? DataObject(stored: Array(bytes))
        else { return nil }
        self.init(data: data, fieldVersions: FieldVersions(stored: Array(versions), rowVersion: 0))
        if let packed = reader.integer() { deletedAt = EditStamp(packed: packed) }
    }
}
