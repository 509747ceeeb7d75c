package import TidemarkWire

/// At which version each field of a live record was last written. Most fields share one version, that of the insert,
/// so only the others are listed; a record that was never edited needs nothing but the common one.
package struct FieldVersions: Hashable, Sendable {
    /// The version of every field that is not listed.
    package private(set) var common: Version
    private var exceptions: [(name: ArraySlice<UInt8>, version: Version)] = []

    package init(common: Version) { self.common = common }

    package static func == (lhs: FieldVersions, rhs: FieldVersions) -> Bool { lhs.encoded() == rhs.encoded() }
    package func hash(into hasher: inout Hasher) { hasher.combine(encoded()) }

    package subscript(_ name: ArraySlice<UInt8>) -> Version {
        exceptions.first { $0.name == name }?.version ?? common
    }

    package mutating func set(_ name: ArraySlice<UInt8>, to version: Version) {
        if let index = exceptions.firstIndex(where: { $0.name == name }) {
            exceptions[index].version = version
        } else {
            exceptions.append((name, version))
        }
    }

    /// `nil` where the common version is the row's own and nothing is listed: the usual case costs no bytes.
    package func stored(rowVersion: Version) -> [UInt8]? {
        common == rowVersion && exceptions.isEmpty ? nil : encoded()
    }

    package init(stored: [UInt8]?, rowVersion: Version) {
        self.init(common: rowVersion)
        guard let stored else { return }
        var reader = ByteReader(stored)
        guard let common = reader.integer() else { return }
        self.common = common
        while let name = reader.run(), let version = reader.integer() { exceptions.append((name, version)) }
    }

    private func encoded() -> [UInt8] {
        var writer = ByteWriter()
        writer.integer(common)
        for exception in exceptions {
            writer.run(exception.name)
            writer.integer(exception.version)
        }
        return writer.bytes
    }
}
