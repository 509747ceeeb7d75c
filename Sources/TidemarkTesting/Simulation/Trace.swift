/// What happened in a world, as a number to compare two runs by, and as lines for people.
struct Trace {
    /// FNV-1a of everything noted.
    private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var count = 0
    /// Kept only where somebody wants to read it.
    private(set) var lines: [String]?

    mutating func keepLines() { lines = [] }

    mutating func note(_ time: Int64, _ event: String, _ bytes: [UInt8] = []) {
        count += 1
        mix(UInt64(bitPattern: time))
        for byte in event.utf8 { mix(UInt64(byte)) }
        for byte in bytes { mix(UInt64(byte)) }
        if lines != nil {
            let text = bytes.isEmpty ? "" : " " + String(decoding: bytes.prefix(2000), as: UTF8.self)
            lines?.append("\(time) \(event)\(text)")
        }
    }

    private mutating func mix(_ word: UInt64) { hash = (hash ^ word) &* 0x100_0000_01b3 }
}
