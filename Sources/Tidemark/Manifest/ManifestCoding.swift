/// A range of the manifest as it stands in a BLOB. Neighbours in the order of their keys begin alike, UUIDs of one
/// moment with eight bytes, so that a key is written as far as it differs from the one before it.
///
/// Behind a zero byte, each entry is one byte with the count of the bytes that the key shares with the key before it,
/// one with the count of those that follow where the key is of another length (the first byte's highest bit says so),
/// these bytes, and the hash. A BLOB of before library version 13 begins with the length of a key, which is never zero,
/// and holds the entries as ``ManifestRange`` has them.
struct ManifestCoding {
    /// Bytes of one range: as many as fill a page of 4,096 bytes beside the row's other columns, and half of one.
    static let pageBytes = 3900
    static let halfPageBytes = 1940

    private static let form: UInt8 = 0
    private static let hashBytes = 8
    private static let isOfOtherLength: UInt8 = 0x80
    private static let mostShared = 127

    private(set) var bytes: [UInt8] = [form]
    private var last: [UInt8] = []

    /// Bytes that an entry takes.
    func count(_ key: UnsafeRawBufferPointer) -> Int {
        key.count - shared(key) + (key.count == last.count ? 1 : 2) + Self.hashBytes
    }

    mutating func append(_ key: UnsafeRawBufferPointer, _ hash: UnsafeRawBufferPointer) {
        let shared = shared(key)
        if key.count == last.count {
            bytes.append(UInt8(shared))
        } else {
            bytes.append(UInt8(shared) | Self.isOfOtherLength)
            bytes.append(UInt8(truncatingIfNeeded: key.count - shared))
        }
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: key[shared...]))
        bytes.append(contentsOf: hash)
        last.removeAll(keepingCapacity: true)
        last.append(contentsOf: key)
    }

    private func shared(_ key: UnsafeRawBufferPointer) -> Int {
        let most = min(last.count, key.count, Self.mostShared)
        var count = 0
        while count < most, last[count] == key[count] { count += 1 }
        return count
    }

    /// Returns the entries as ``ManifestRange`` has them, up to one that cannot be read.
    static func decode(_ blob: [UInt8]) -> [UInt8] {
        guard blob.first == form else { return blob }
        var entries: [UInt8] = []
        entries.reserveCapacity(2 * blob.count)
        // Where the key before stands among the entries.
        var last = 0..<0
        var at = 1
        while at < blob.count {
            let shared = Int(blob[at] & ~isOfOtherLength)
            var length = last.count - shared
            if blob[at] & isOfOtherLength != 0 {
                at += 1
                guard at < blob.count else { break }
                length = Int(blob[at])
            }
            at += 1
            let (keyBytes, end) = (shared + length, at + length + hashBytes)
            guard shared <= last.count, length >= 0, keyBytes > 0, keyBytes <= UInt8.max, end <= blob.count
            else { break }
            entries.append(UInt8(keyBytes))
            let start = entries.count
            for place in last.prefix(shared) { entries.append(entries[place]) }
            entries.append(contentsOf: blob[at..<end])
            last = start..<(start + keyBytes)
            at = end
        }
        return entries
    }
}
