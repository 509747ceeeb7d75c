import TidemarkWire

/// A few entities by name, found by the bytes in which a store gives them.
struct WithheldEntities: Hashable, Sendable {
    private let names: [[UInt8]]
    /// How the payloads of their idmaps begin.
    private let openings: [[UInt8]]

    init(_ names: [String] = []) {
        self.names = names.map { Array($0.utf8) }
        openings = names.map(Assignment.idmapOpening)
    }

    func contains(_ name: UnsafeRawBufferPointer) -> Bool {
        !names.isEmpty && names.contains { Identifier.isSameName($0, name) }
    }

    /// Whether a row is of one of them. An idmap is of no entity, but names one before all else.
    func containsEntity(of change: BorrowedChange) -> Bool {
        guard change.kind == .idmap else { return contains(change.entity) }
        return openings.contains { Identifier.isSameName($0, change.payload.prefix($0.count)) }
    }

    func contains(_ name: String) -> Bool { names.contains { Identifier.isSameName($0, name.utf8) } }
}

extension Verdict {
    /// The verdict without what others wrote, for an entity that is only pushed.
    func withholdingOthers() -> Verdict {
        var verdict = self
        if verdict.record?.data != nil { verdict.record = nil }
        verdict.overwrites = []
        verdict.losses = []
        return verdict
    }
}
