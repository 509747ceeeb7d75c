/// The entries of one range of the manifest: for each record the length of its key, the key and eight bytes of its
/// row's hash, in the order of the keys. A few changes among many entries move bytes and make nothing else of them. In
/// the file a key takes only what differs from the key before it (``ManifestCoding``).
struct ManifestRange {
    struct Entry: Hashable {
        var key: ArraySlice<UInt8>
        var hash: UInt64
    }

    private(set) var count = 0
    private var bytes: [UInt8] = []

    init() {}

    /// An unreadable entry ends the range: the records behind it count as unknown, and the server is asked for them.
    init(_ blob: [UInt8]) {
        bytes = ManifestCoding.decode(blob)
        var end = 0
        bytes.withUnsafeBytes { buffer in
            while let place = Place(buffer, at: end) { (end, count) = (place.end, count + 1) }
        }
        if end < bytes.count { bytes.removeSubrange(end...) }
    }

    /// Where an entry stands.
    private struct Place {
        let start: Int
        let keyEnd: Int
        var end: Int { keyEnd + 8 }

        init?(_ buffer: UnsafeRawBufferPointer, at start: Int) {
            guard start < buffer.count else { return nil }
            self.start = start
            keyEnd = start + 1 + Int(buffer[start])
            guard keyEnd > start + 1, end <= buffer.count else { return nil }
        }

        func key(_ buffer: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: buffer[(start + 1)..<keyEnd])
        }

        func hash(_ buffer: UnsafeRawBufferPointer) -> UInt64 {
            UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: keyEnd, as: UInt64.self))
        }
    }

    /// Where in the order of the range a key stands, and its hash; `nil` where it does not.
    func find(_ key: [UInt8]) -> (index: Int, hash: UInt64)? {
        bytes.withUnsafeBytes { buffer in
            key.withUnsafeBytes { key in
                var (at, index) = (0, 0)
                while let place = Place(buffer, at: at) {
                    let known = place.key(buffer)
                    if !known.lexicographicallyPrecedes(key) {
                        return known.elementsEqual(key) ? (index, place.hash(buffer)) : nil
                    }
                    (at, index) = (place.end, index + 1)
                }
                return nil
            }
        }
    }

    var entries: [Entry] {
        var entries: [Entry] = []
        entries.reserveCapacity(count)
        bytes.withUnsafeBytes { buffer in
            var at = 0
            while let place = Place(buffer, at: at) {
                entries.append(Entry(key: bytes[(place.start + 1)..<place.keyEnd], hash: place.hash(buffer)))
                at = place.end
            }
        }
        return entries
    }

    /// Takes changes in, which are in the order of their keys; a hash of `nil` takes the entry out. Returns whether
    /// anything is different.
    mutating func merge(_ changes: ArraySlice<ManifestChange>) -> Bool {
        var merged: [UInt8] = []
        var isChanged = false
        var grown = 0
        // All bytes before this offset are in `merged`.
        var copied = 0
        bytes.withUnsafeBytes { buffer in
            var at = 0
            for change in changes {
                var former: Place?
                change.key.withUnsafeBytes { key in
                    while let place = Place(buffer, at: at) {
                        let known = place.key(buffer)
                        guard known.lexicographicallyPrecedes(key) else {
                            if known.elementsEqual(key) { former = place }
                            return
                        }
                        at = place.end
                    }
                }
                guard former?.hash(buffer) != change.hash else { continue }
                if !isChanged { merged.reserveCapacity(buffer.count + changes.count * 40) }
                isChanged = true
                merged.append(contentsOf: buffer[copied..<at])
                if let former { (at, grown) = (former.end, grown - 1) }
                copied = at
                guard let hash = change.hash else { continue }
                Self.append(change.key, hash, to: &merged)
                grown += 1
            }
            if isChanged { merged.append(contentsOf: buffer[copied...]) }
        }
        guard isChanged else { return false }
        bytes = merged
        count += grown
        return true
    }

    private static func append(_ key: [UInt8], _ hash: UInt64, to bytes: inout [UInt8]) {
        // A key has at most 129 bytes: a form and the text of a record id.
        bytes.append(UInt8(truncatingIfNeeded: key.count))
        bytes.append(contentsOf: key)
        withUnsafeBytes(of: hash.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// The entries as BLOBs, each with its first key: one where they fit into a page of the file, else several of which
    /// a page holds two.
    func blobs() -> [(first: [UInt8], blob: [UInt8])] {
        if let whole = parts(of: ManifestCoding.pageBytes), whole.count <= 1 { return whole }
        return parts(of: ManifestCoding.halfPageBytes) ?? []
    }

    private func parts(of size: Int) -> [(first: [UInt8], blob: [UInt8])]? {
        bytes.withUnsafeBytes { buffer in
            var parts: [(first: [UInt8], blob: [UInt8])] = []
            var coding = ManifestCoding()
            var (first, at): ([UInt8]?, Int) = (nil, 0)
            while let place = Place(buffer, at: at) {
                at = place.end
                let key = place.key(buffer)
                let hash = UnsafeRawBufferPointer(rebasing: buffer[place.keyEnd..<place.end])
                if let start = first, coding.bytes.count + coding.count(key) > size {
                    // The whole does not fit, and is cut into smaller ones.
                    if size == ManifestCoding.pageBytes { return nil }
                    parts.append((start, coding.bytes))
                    (coding, first) = (ManifestCoding(), nil)
                }
                first = first ?? Array(key)
                coding.append(key, hash)
            }
            if let first { parts.append((first, coding.bytes)) }
            return parts
        }
    }
}

/// A change of one record's entry. It gets this hash; `nil` removes the entry.
struct ManifestChange {
    let key: [UInt8]
    let hash: UInt64?
}
