/// The entries of one range of the manifest, as they stand in a BLOB: for each record the length of its key, the key
/// and eight bytes of its row's hash, in the order of the keys.
struct ManifestRange {
    struct Entry: Hashable {
        var key: ArraySlice<UInt8>
        var hash: UInt64
    }

    /// A range is cut into several where it grows beyond this.
    static let limit = 128
    /// How many entries each of those gets.
    static let half = 64

    private(set) var entries: [Entry] = []

    init() {}

    /// What cannot be read ends the range: the records behind it count as unknown, and the server is asked for them.
    init(_ blob: [UInt8]) {
        entries.reserveCapacity(Self.limit)
        var index = 0
        while index < blob.count {
            let start = index + 1
            let end = start + Int(blob[index])
            guard end + 8 <= blob.count, end > start else { return }
            let hash = blob[end..<(end + 8)].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            entries.append(Entry(key: blob[start..<end], hash: hash))
            index = end + 8
        }
    }

    func index(of key: some Collection<UInt8>) -> Int? {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].key.lexicographicallyPrecedes(key) { low = middle + 1 } else { high = middle }
        }
        return low < entries.count && entries[low].key.elementsEqual(key) ? low : nil
    }

    /// Takes changes in, which are in the order of their keys; a hash of `nil` takes the entry out. Returns whether
    /// anything is different.
    mutating func merge(_ changes: ArraySlice<(key: [UInt8], hash: UInt64?)>) -> Bool {
        var merged: [Entry] = []
        merged.reserveCapacity(entries.count + changes.count)
        var isChanged = false
        var old = entries[...]
        for change in changes {
            while let next = old.first, next.key.lexicographicallyPrecedes(change.key) {
                merged.append(old.removeFirst())
            }
            let former = old.first?.key.elementsEqual(change.key) == true ? old.removeFirst().hash : nil
            isChanged = isChanged || former != change.hash
            if let hash = change.hash { merged.append(Entry(key: change.key[...], hash: hash)) }
        }
        merged.append(contentsOf: old)
        if isChanged { entries = merged }
        return isChanged
    }

    /// The entries as BLOBs of at most `limit` entries, each with its first key.
    func blobs() -> [(first: ArraySlice<UInt8>, blob: [UInt8])] {
        guard !entries.isEmpty else { return [] }
        guard entries.count > Self.limit else { return [(entries[0].key, Self.blob(entries[...]))] }
        return stride(from: 0, to: entries.count, by: Self.half).map { start in
            let part = entries[start..<min(start + Self.half, entries.count)]
            return (entries[start].key, Self.blob(part))
        }
    }

    private static func blob(_ entries: ArraySlice<Entry>) -> [UInt8] {
        var blob: [UInt8] = []
        blob.reserveCapacity(entries.reduce(0) { $0 + $1.key.count + 9 })
        for entry in entries {
            // A key has at most 129 bytes: a form and the text of a record id.
            blob.append(UInt8(truncatingIfNeeded: entry.key.count))
            blob.append(contentsOf: entry.key)
            withUnsafeBytes(of: entry.hash.littleEndian) { blob.append(contentsOf: $0) }
        }
        return blob
    }
}
