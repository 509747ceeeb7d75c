import TidemarkWire

/// Finds what two texts share, in time that grows with their length whatever is in them: blocks of the old text are
/// found again in the new one by a rolling hash, and grown to both sides.
///
/// After a difference the search takes the nearest common block, counted in bytes that would have to go or come. The
/// bytes that it passes then pay for all steps spent on the search.
struct TextDifference {
    let old: [UInt8]
    let new: [UInt8]

    private static let blockSize = 16
    /// Equal runs shorter than this are sent again: a splice more would take as much.
    private static let leastRun = 12
    /// Blocks looked at for one hash: what shares a hash by accident is passed over.
    private static let probeLimit = 16

    /// A run of bytes that both texts have.
    private struct Run {
        var old: Int
        var new: Int
        var count: Int
    }

    /// The parts of the new text that are not in the old one, each with what it replaces.
    func splices() -> [FieldPatch.Splice] {
        var splices: [FieldPatch.Splice] = []
        var (oldEnd, newEnd) = (0, 0)
        let end = Run(old: old.count, new: new.count, count: 0)
        for run in wholeScalars(runs()) + [end] {
            if run.old > oldEnd || run.new > newEnd {
                splices.append(
                    FieldPatch.Splice(
                        at: Int64(oldEnd), deleted: Int64(run.old - oldEnd), inserted: Array(new[newEnd..<run.new])))
            }
            (oldEnd, newEnd) = (run.old + run.count, run.new + run.count)
        }
        return splices
    }

    /// Runs cut to whole scalars, so that every splice is text; those at the ends stay however short they are.
    private func wholeScalars(_ runs: [Run]) -> [Run] {
        runs.compactMap { run in
            var run = run
            while run.count > 0, !isBoundary(run.old, run.new) {
                (run.old, run.new, run.count) = (run.old + 1, run.new + 1, run.count - 1)
            }
            while run.count > 0, !isBoundary(run.old + run.count, run.new + run.count) { run.count -= 1 }
            let isAtEnd = run.new == 0 && run.old == 0 || run.new + run.count == new.count
            return run.count >= Self.leastRun || (isAtEnd && run.count > 0) ? run : nil
        }
    }

    /// Whether a scalar begins at the place, or the text ends there.
    static func isBoundary(_ text: [UInt8], _ place: Int) -> Bool {
        place == text.count || text[place] & 0xc0 != 0x80
    }

    private func isBoundary(_ oldPlace: Int, _ newPlace: Int) -> Bool {
        Self.isBoundary(old, oldPlace) && Self.isBoundary(new, newPlace)
    }

    // MARK: What both have

    private func runs() -> [Run] {
        let shorter = min(old.count, new.count)
        var head = 0
        while head < shorter, old[head] == new[head] { head += 1 }
        var tail = 0
        while tail < shorter - head, old[old.count - 1 - tail] == new[new.count - 1 - tail] { tail += 1 }
        let middle = common(old: head..<(old.count - tail), new: head..<(new.count - tail))
        return [Run(old: 0, new: 0, count: head)] + middle
            + [Run(old: old.count - tail, new: new.count - tail, count: tail)]
    }

    private func common(old oldRange: Range<Int>, new newRange: Range<Int>) -> [Run] {
        guard oldRange.count >= Self.blockSize, newRange.count >= Self.blockSize else { return [] }
        var blocks = Blocks(old, in: oldRange, size: Self.blockSize)
        var runs: [Run] = []
        var (oldPlace, newPlace) = (oldRange.lowerBound, newRange.lowerBound)
        while let found = nearest(&blocks, oldPlace, newPlace, newEnd: newRange.upperBound) {
            var run = found
            while run.old > oldPlace, run.new > newPlace, old[run.old - 1] == new[run.new - 1] {
                (run.old, run.new, run.count) = (run.old - 1, run.new - 1, run.count + 1)
            }
            while run.old + run.count < oldRange.upperBound, run.new + run.count < newRange.upperBound,
                old[run.old + run.count] == new[run.new + run.count]
            {
                run.count += 1
            }
            runs.append(run)
            (oldPlace, newPlace) = (run.old + run.count, run.new + run.count)
        }
        return runs
    }

    /// The common block that is reached with the fewest bytes gone or come.
    private func nearest(_ blocks: inout Blocks, _ oldPlace: Int, _ newPlace: Int, newEnd: Int) -> Run? {
        let size = Self.blockSize
        guard newPlace + size <= newEnd else { return nil }
        var best: Run?
        var least = Int.max
        var hash = RollingHash(new, at: newPlace, count: size)
        var place = newPlace
        while place - newPlace < least {
            if let found = blocks.first(
                hash.value, from: oldPlace, limit: Self.probeLimit, where: { isSame($0, place) }),
                found - oldPlace + place - newPlace < least
            {
                least = found - oldPlace + place - newPlace
                best = Run(old: found, new: place, count: size)
            }
            guard place + size < newEnd else { break }
            hash.roll(out: new[place], in: new[place + size])
            place += 1
        }
        return best
    }

    private func isSame(_ oldPlace: Int, _ newPlace: Int) -> Bool {
        old[oldPlace..<(oldPlace + Self.blockSize)] == new[newPlace..<(newPlace + Self.blockSize)]
    }
}

/// A polynomial over a window of bytes, moved on by one byte at a time.
private struct RollingHash {
    private(set) var value: UInt64 = 0
    private var weight: UInt64 = 1

    private static let base: UInt64 = 0x9e37_79b9_7f4a_7c15

    init(_ text: [UInt8], at place: Int, count: Int) {
        for byte in text[place..<(place + count)] {
            value = value &* Self.base &+ UInt64(byte) &+ 1
            weight = weight &* Self.base
        }
    }

    mutating func roll(out: UInt8, in byte: UInt8) {
        value = value &* Self.base &+ UInt64(byte) &+ 1 &- weight &* (UInt64(out) &+ 1)
    }
}

/// The blocks of a text by their hashes, those of one hash in the order of their places. Asked for places that only
/// grow, it lets go of those that were passed.
private struct Blocks {
    private var heads: [Int32]
    private var following: [Int32]
    private let hashes: [UInt64]
    private let start: Int
    private let size: Int

    init(_ text: [UInt8], in range: Range<Int>, size: Int) {
        start = range.lowerBound
        self.size = size
        let count = range.count / size
        var buckets = 16
        while buckets < count * 2 { buckets *= 2 }
        heads = [Int32](repeating: -1, count: buckets)
        following = [Int32](repeating: -1, count: count)
        hashes = (0..<count).map { RollingHash(text, at: range.lowerBound + $0 * size, count: size).value }
        for block in (0..<count).reversed() {
            let bucket = bucket(hashes[block])
            following[block] = heads[bucket]
            heads[bucket] = Int32(truncatingIfNeeded: block)
        }
    }

    private func bucket(_ hash: UInt64) -> Int {
        Int(truncatingIfNeeded: (hash ^ hash >> 32) & UInt64(heads.count - 1))
    }

    /// The first place at or behind `place` whose block has this hash and for which `matches` holds.
    mutating func first(_ hash: UInt64, from place: Int, limit: Int, where matches: (Int) -> Bool) -> Int? {
        let bucket = bucket(hash)
        while heads[bucket] >= 0, start + Int(heads[bucket]) * size < place {
            heads[bucket] = following[Int(heads[bucket])]
        }
        var block = Int(heads[bucket])
        for _ in 0..<limit where block >= 0 {
            let found = start + block * size
            if hashes[block] == hash, matches(found) { return found }
            block = Int(following[block])
        }
        return nil
    }
}
