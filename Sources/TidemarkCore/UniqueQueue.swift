/// A queue in which each element stands once. An element that is appended while it waits keeps its place; once taken,
/// it goes behind all others, so that nobody who comes again and again keeps another one waiting.
package struct UniqueQueue<Element: Hashable & Sendable>: Hashable, Sendable {
    private var elements: [Element] = []

    package init() {}

    /// Takes time with the number of elements.
    package mutating func append(_ element: Element) {
        if !elements.contains(element) { elements.append(element) }
    }

    package mutating func popFirst() -> Element? { elements.isEmpty ? nil : elements.removeFirst() }
}
