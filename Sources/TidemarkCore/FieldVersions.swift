package import TidemarkWire

/// At which version each field of a live record was last written, and, where the later edit wins, when it was edited.
/// Most fields share one version, that of the insert, so only the others are listed; a record that was never edited
/// needs nothing but the common one.
package struct FieldVersions: Hashable, Sendable {
    /// The version of every field that is not listed.
    package private(set) var common: Version
    /// The newest version at which the row was written otherwise than by setting the fields that an edit names: it was
    /// made, revived or restored. The fields' versions do not tell how the row differs from any row before that.
    package private(set) var wholeSince: Version
    private var commonStamp: EditStamp
    private var exceptions: [Exception] = []
    private var places = NamePlaces()

    private struct Exception: Sendable {
        var name: ArraySlice<UInt8>
        var version: Version
        var stamp: EditStamp
    }

    package init(common: Version, stamp: EditStamp = .zero) {
        self.common = common
        wholeSince = common
        commonStamp = stamp
    }

    package static func == (lhs: FieldVersions, rhs: FieldVersions) -> Bool { lhs.encoded() == rhs.encoded() }
    package func hash(into hasher: inout Hasher) { hasher.combine(encoded()) }

    package subscript(_ name: ArraySlice<UInt8>) -> Version {
        places[name].map { exceptions[$0].version } ?? common
    }

    /// When the field's value was edited; zero where no stamps are kept.
    package func stamp(of name: ArraySlice<UInt8>) -> EditStamp {
        places[name].map { exceptions[$0].stamp } ?? commonStamp
    }

    /// The latest stamp of all fields: when the record was edited last; zero where no stamps are kept.
    package var newestStamp: EditStamp { exceptions.reduce(commonStamp) { max($0, $1.stamp) } }

    /// A field's stamp never goes back: an edit that was made on the value is later than it, whatever clocks say. One
    /// that the record did not have (`isNew`) has no stamp yet.
    package mutating func set(
        _ name: ArraySlice<UInt8>, to version: Version, stamp: EditStamp = .zero, isNew: Bool = false
    ) {
        if let index = places[name] {
            exceptions[index].version = version
            exceptions[index].stamp = max(exceptions[index].stamp, stamp)
        } else {
            append(Exception(name: name, version: version, stamp: isNew ? stamp : max(commonStamp, stamp)))
        }
    }

    /// The row was written otherwise than field by field.
    package mutating func noteWhole(at version: Version) { wholeSince = max(wholeSince, version) }

    /// The fields that were written after `version`; `nil` where that does not tell how the row differs from the one
    /// of then.
    package func written(after version: Version) -> [ArraySlice<UInt8>]? {
        guard wholeSince <= version, common <= version else { return nil }
        return exceptions.filter { $0.version > version }.map(\.name)
    }

    private mutating func append(_ exception: Exception) {
        exceptions.append(exception)
        places.append(exception.name)
    }
}

// MARK: - As bytes

extension FieldVersions {
    /// Stands before a form with stamps; a version is never negative.
    private static let stamped: Int64 = -1
    /// The name under which the newest version stands at which the row was written whole, where that is not the common
    /// one. No field has it (W2): who does not know it takes it for one that the row does not have.
    private static let whole = [UInt8(ascii: "$")]

    /// `nil` where the common version is the row's own and nothing is listed: the usual case costs no bytes.
    package func stored(rowVersion: Version) -> [UInt8]? {
        common == rowVersion && commonStamp == .zero && exceptions.isEmpty && wholeSince <= common ? nil : encoded()
    }

    package init(stored: [UInt8]?, rowVersion: Version) {
        self.init(common: rowVersion)
        guard let stored else { return }
        var reader = ByteReader(stored)
        guard var common = reader.integer() else { return }
        let hasStamps = common == Self.stamped
        if hasStamps {
            guard let version = reader.integer(), let stamp = reader.integer() else { return }
            (common, commonStamp) = (version, EditStamp(packed: stamp))
        }
        self.common = common
        wholeSince = common
        while let name = reader.run(), let version = reader.integer() {
            let stamp = hasStamps ? reader.integer() ?? 0 : 0
            guard !name.elementsEqual(Self.whole) else {
                noteWhole(at: version)
                continue
            }
            append(Exception(name: name, version: version, stamp: EditStamp(packed: stamp)))
        }
    }

    private var hasStamps: Bool { commonStamp != .zero || exceptions.contains { $0.stamp != .zero } }

    func encoded() -> [UInt8] {
        var writer = ByteWriter()
        let hasStamps = hasStamps
        if hasStamps { writer.integer(Self.stamped) }
        writer.integer(common)
        if hasStamps { writer.integer(commonStamp.packed) }
        for exception in exceptions {
            writer.run(exception.name)
            writer.integer(exception.version)
            if hasStamps { writer.integer(exception.stamp.packed) }
        }
        if wholeSince > common {
            writer.run(Self.whole[...])
            writer.integer(wholeSince)
            if hasStamps { writer.integer(EditStamp.zero.packed) }
        }
        return writer.bytes
    }
}
