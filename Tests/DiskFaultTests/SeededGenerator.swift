import Foundation

/// A generator whose whole future is its seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 &+ 0x1234_5678_9abc_def1 }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}

/// How much is tried: little in every build, more by environment.
enum Amount {
    /// A number from the environment, or this one.
    static func named(_ name: String, or ordinary: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? ordinary
    }

    static func word(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }

    /// Figures of long runs.
    static func tell(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }
}
