/// Something that must never be.
struct Violation: Error, Hashable, CustomStringConvertible {
    /// Which guarantee it breaks (Documentation/Architecture.md), or what other check.
    var guarantee: String
    /// What is wrong, where.
    var text: String

    init(_ guarantee: String, _ text: String) {
        self.guarantee = guarantee
        self.text = text
    }

    var description: String { "\(guarantee): \(text)" }
}
