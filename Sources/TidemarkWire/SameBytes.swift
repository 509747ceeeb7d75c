extension String {
    /// Whether both texts have the same bytes, as databases compare them. Swift's `==` calls two texts equal that are
    /// not: `"é"` written in one scalar and in two.
    package func hasSameBytes(as other: String) -> Bool {
        let (left, right) = (utf8, other.utf8)
        guard left.count == right.count else { return false }
        let isSame = left.withContiguousStorageIfAvailable { left in
            right.withContiguousStorageIfAvailable { UnsafeRawBufferPointer(left).hasSameBytes(as: .init($0)) }
        }
        return isSame.flatMap { $0 } ?? left.elementsEqual(right)
    }
}

extension UnsafeRawBufferPointer {
    /// Whether both have the same bytes; eight are compared at a time.
    package func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        var place = 0
        while place &+ 8 <= count {
            guard
                loadUnaligned(fromByteOffset: place, as: UInt64.self)
                    == other.loadUnaligned(fromByteOffset: place, as: UInt64.self)
            else { return false }
            place &+= 8
        }
        while place < count {
            guard self[place] == other[place] else { return false }
            place &+= 1
        }
        return true
    }

    /// Where `pattern` stands first.
    package func firstIndex(of pattern: UnsafeRawBufferPointer) -> Int? {
        guard let head = pattern.first, pattern.count <= count else { return nil }
        for place in 0...(count - pattern.count)
        where self[place] == head
            && UnsafeRawBufferPointer(rebasing: self[place..<(place + pattern.count)]).hasSameBytes(as: pattern)
        { return place }
        return nil
    }
}
