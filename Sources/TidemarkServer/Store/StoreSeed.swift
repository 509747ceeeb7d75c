/// The random parts of a store: the id of an opening, and the token key of a store that is made with it.
package struct StoreSeed: Sendable {
    /// The id of the opening. It tells histories apart that went on from one state of a store.
    package var incarnation: Int64
    /// 32 bytes.
    package var tokenKey: [UInt8]

    /// Draws both.
    package init(from generator: inout some RandomNumberGenerator) {
        incarnation = Int64.random(in: 1...Int64.max, using: &generator)
        tokenKey = (0..<4).flatMap { _ in
            let word = generator.next()
            return stride(from: 0, to: 64, by: 8).map { UInt8(truncatingIfNeeded: word >> $0) }
        }
    }

    /// As the system draws them.
    package init() {
        var generator = SystemRandomNumberGenerator()
        self.init(from: &generator)
    }
}
