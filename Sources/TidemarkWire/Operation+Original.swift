extension Operation {
    /// The place of a replayed operation in the history that the server has lost: the epoch of its verdict, and the
    /// version that it had got there.
    package struct Original: Hashable, Sendable {
        package static let epochLimit = 256

        /// The epoch in which the operation was answered, or else the one on which it was made.
        package var epoch: String
        /// The version that it had; `nil` where it had none, or none that the device knows of.
        package var version: Version?

        package init(epoch: String, version: Version?) {
            self.epoch = epoch
            self.version = version
        }
    }
}

extension Operation.Original {
    package func write(to writer: inout JSONWriter) {
        writer.raw(",\"original\":{\"epoch\":")
        writer.string(epoch)
        if let version { writer.member("version", version) }
        writer.raw(byte: UInt8(ascii: "}"))
    }

    package init(from reader: inout JSONReader) throws(JSONError) {
        let start = reader.index
        var epoch: String?
        var version: Version?
        var seen = MemberNames()
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader)
            let label = reader.string(name)
            do throws(JSONError) {
                switch label {
                case "epoch": epoch = try reader.readIdentifier { (1...Self.epochLimit).contains($0.utf8.count) }
                case "version": version = try reader.readInteger(in: 1...Int64.max)
                default: try reader.skipUnknown()
                }
            } catch { throw error.inside(label) }
        }
        guard let epoch else { throw JSONError(.missingMember, at: start).inside("epoch") }
        self.init(epoch: epoch, version: version)
    }
}
