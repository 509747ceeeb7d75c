/// A small generator of numbers that look random and are the same for the same seed, on every platform (Steele, Lea and
/// Flood, 2014). For tests; nothing that has to be secret may come from it.
package struct SplitMix64: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to a limit, which it leaves out.
    package mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }

    /// Whether something happens that does so as often of a hundred times.
    package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    /// One of some choices, of which there is one at least.
    package mutating func pick<Choice>(_ choices: [Choice]) -> Choice { choices[below(choices.count)] }
}
