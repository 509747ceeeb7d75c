/// Checkpoints, cursors and epochs that answers gave, for later requests to use.
package struct LearnedTokens {
    private var learned = [(kind: "epoch", text: "AAAA")]

    package init() {}

    package func texts(_ kind: String) -> [String] { learned.filter { $0.kind == kind }.map(\.text) }

    /// One that an answer gave, as it was or with a little changed, mostly in its own place.
    package func token(of name: String, with dice: inout Mutator) -> String {
        let own = texts(name == "at" ? "since" : name)
        var bytes = Array(dice.any(own.isEmpty || dice.below(10) == 0 ? learned.map(\.text) : own).utf8)
        if dice.below(12) == 0 { dice.mutate(&bytes) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Keeps some of the first and the newest.
    ///
    /// - Parameter member: an answer's members by their names.
    package mutating func learn(with dice: inout Mutator, _ member: (String) -> String?) {
        for (name, kind) in [
            ("nextSince", "since"), ("snapshotToken", "snapshotToken"), ("pageCursor", "pageCursor"),
            ("epoch", "epoch"), ("nextCursor", "cursor"),
        ] {
            guard let text = member(name) else { continue }
            let own = learned.indices.filter { learned[$0].kind == kind }
            if own.count < 8 { learned.append((kind, text)) } else { learned[own[dice.below(8)]].text = text }
        }
    }
}
