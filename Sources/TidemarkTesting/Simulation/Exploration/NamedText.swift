import TidemarkCore

/// Words that are only names: who has the same one matters, and not which it is.
struct NamedWords {
    private var numbers: [[UInt8]: Int] = [:]

    var count: Int { numbers.count }

    mutating func number(of word: ArraySlice<UInt8>) -> Int {
        let word = Array(word)
        if let number = numbers[word] { return number }
        let number = numbers.count
        numbers[word] = number
        return number
    }
}

/// A text in which names are told from the rest: 32 hexadecimal digits (devices and lanes), what an act has made unique
/// by `~` and its number, and row numbers. Moments are left out.
struct NamedText {
    private enum Piece {
        case bytes(Range<Int>)
        case name(Int)
    }

    private let text: [UInt8]
    private var pieces: [Piece] = []

    init(_ text: [UInt8], _ words: inout NamedWords) {
        self.text = text
        var (start, place) = (0, 0)
        while place < text.count {
            guard Self.isOfWord(text[place]) else {
                place += 1
                continue
            }
            let first = place
            while place < text.count, Self.isOfWord(text[place]) { place += 1 }
            let word = text[first..<place]
            let isMoment = Self.isMoment(word)
            guard isMoment || Self.isName(word) else { continue }
            pieces.append(.bytes(start..<first))
            if isMoment {
                // The rest of it has colons and a point.
                if word.contains(UInt8(ascii: "T")) {
                    while place < text.count, text[place] != UInt8(ascii: "Z") { place += 1 }
                }
            } else {
                pieces.append(.name(words.number(of: word)))
            }
            start = place
        }
        pieces.append(.bytes(start..<text.count))
    }

    func hash(into hasher: inout NamingHasher) {
        for piece in pieces {
            switch piece {
            case .bytes(let range): hasher.add(text[range])
            case .name(let number): hasher.add(name: number)
            }
        }
        hasher.add(byte: 0x1c)
    }

    private static func isOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "~"),
            UInt8(ascii: "^"):
            true
        default: false
        }
    }

    private static func isName(_ word: ArraySlice<UInt8>) -> Bool {
        guard let first = word.first else { return false }
        if first == UInt8(ascii: "~") || first == UInt8(ascii: "^") { return word.count > 1 }
        return word.count == 32 && word.allSatisfy(isHexDigit)
    }

    /// An edit's stamp, milliseconds since 1970, or the date of a timestamp.
    private static func isMoment(_ word: ArraySlice<UInt8>) -> Bool {
        if word.count == 16, word.allSatisfy(isHexDigit) { return true }
        guard word.count == 13 else { return false }
        if word.allSatisfy({ 0x30...0x39 ~= $0 }) { return true }
        guard word.starts(with: "20".utf8) else { return false }
        let word = Array(word)
        return word[4] == UInt8(ascii: "-") && word[7] == UInt8(ascii: "-") && word[10] == UInt8(ascii: "T")
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        0x30...0x39 ~= byte || 0x61...0x66 ~= byte
    }
}

/// Hashes texts; names by the order in which they are met.
struct NamingHasher {
    private var hash = SipHash()
    private var order: [Int]
    private var met = 0

    init(count: Int) { order = Array(repeating: 0, count: count) }

    mutating func add(_ bytes: ArraySlice<UInt8>) { hash.update(bytes) }
    mutating func add(byte: UInt8) { hash.update(byte: byte) }
    mutating func add(_ number: Int64) { add(Array("\(number)".utf8)[...]) }

    mutating func add(name: Int) {
        if order[name] == 0 {
            met += 1
            order[name] = met
        }
        hash.update(byte: 0x1b)
        hash.update(byte: UInt8(truncatingIfNeeded: order[name]))
        hash.update(byte: UInt8(truncatingIfNeeded: order[name] >> 8))
    }

    consuming func finish() -> UInt64 { hash.finish() }
}
