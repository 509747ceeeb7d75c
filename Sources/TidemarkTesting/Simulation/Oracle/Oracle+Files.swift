import Foundation
import GRDB
import Tidemark
import TidemarkCore
import TidemarkServer
import TidemarkWire

// The oracle holds that no byte of an attachment is lost or wrong, and that no file is shown before it is whole (A12).
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    typealias Place = OracleFiles.Place

    /// An app adds bytes.
    func adds(_ bytes: [UInt8]) { files?.contents[Self.hash(bytes)] = bytes }

    /// Bytes were added, and a row names them.
    func added(_ bytes: [UInt8], _ reference: BlobReference, by device: Int) {
        check {
            guard Self.hash(bytes) == reference.hash, bytes.count == reference.size else {
                throw Violation("A12 wrong", "device \(device) calls \(bytes.count) bytes \(reference)")
            }
        }
        files?.owed[device][reference, default: OracleFiles.Owed()].unnamedSince = nil
    }

    /// A device that is told of a file, or has to bring it, forgets that when its rows cease to name the file. It may
    /// still have to bring what a quarantined row names.
    func forgetUnnamed(on device: Int) {
        guard let files else { return }
        let (told, owed) = (files.told.keys.filter { $0.user == device }, files.owed[device].keys)
        guard !told.isEmpty || !owed.isEmpty else { return }
        let named = places(on: device)
        let all = Set(named.values.joined())
        for part in told where !all.contains(part.place) { self.files?.told[part] = nil }
        guard devices[device].sight.quarantined.isEmpty else { return }
        for reference in owed { self.files?.owed[device][reference]?.named.formIntersection(named[reference] ?? []) }
    }

    /// The app's write is done: rows name bytes in places where none did before.
    func noteNamed(by device: Int, since former: [BlobReference: Set<Place>]) {
        let places = places(on: device)
        for reference in (files?.owed[device] ?? [:]).keys {
            files?.owed[device][reference]?.named
                .formUnion((places[reference] ?? []).subtracting(former[reference] ?? []))
        }
    }

    private static func hash(_ bytes: [UInt8]) -> String {
        SHA256.digest(bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// Looks at all files and blobs.
    func checkFiles() {
        guard files != nil else { return }
        check {
            try checkBlobs()
            for device in world.devices { try checkFiles(of: device) }
        }
    }

    // MARK: The server's

    private var serverNow: Int64 { World.beginning + world.time + world.server.clockOffset }

    /// How long a blob is kept that no row names, in milliseconds.
    private static let leastKept: Int64 = 7 * 86_400_000
    private static let scanInterval: Int64 = 86_400_000

    private func checkBlobs() throws {
        var present: Set<Place> = []
        for (scope, held) in world.server.blobs?.scopes ?? [:] {
            for (hash, blob) in held.blobs {
                present.insert(Place(scope: scope, hash: hash))
                guard files?.contents[hash] != blob.bytes || Int64(blob.bytes.count) != blob.blob.size else { continue }
                throw Violation("A12 wrong", "the server's blob \(hash.prefix(6)) of \(scope) has other bytes")
            }
        }
        for place in present.subtracting(files?.present ?? []) {
            files?.uses[place] = serverNow
            files?.came[place] = world.time
            files?.wentEarly.remove(place)
            count(files?.unknown[place] == nil ? "uploaded" : "reuploaded")
        }
        for place in (files?.present ?? []).subtracting(present).sorted(by: { $0.hash < $1.hash }) {
            try checkCollected(place)
        }
        let told = files?.told.filter { present.contains($0.key.place) }
        files?.told = told ?? [:]
        files?.present = present
        files?.had.formUnion(present)
        for place in present { files?.unknown[place] = nil }
    }

    private func checkCollected(_ place: Place) throws {
        let what = "the server has removed blob \(place.hash.prefix(6)) of \(place.scope)"
        if namesOnServer(in: place.scope).contains(place.hash) {
            throw Violation("A12 collected", "\(what), which a record names")
        }
        count("collected")
        if world.time - (files?.came[place] ?? 0) < Self.leastKept { files?.wentEarly.insert(place) }
        guard !world.hasWrongServerClock, let used = files?.uses[place], serverNow - used < Self.leastKept else {
            return
        }
        throw Violation("A12 collected", "\(what), which was used \(serverNow - used) ms before")
    }

    func count(_ what: String) { world.fileCounts[what, default: 0] += 1 }

    private func namesOnServer(in scope: Scope) -> Set<String> {
        var names: Set<String> = []
        guard let history = scopes[scope]?.current else { return [] }
        for key in history.versions.keys {
            guard let table = tables[key.entity], let cells = history.newest(key) else { continue }
            names.formUnion(Self.references(in: cells, table, world.app).map(\.hash))
        }
        return names
    }

    /// The server has looked for old history, if it has lived through it.
    func collected() {
        guard let files, !world.server.life.isOver else { return }
        for scope in Set(files.present.map(\.scope)) {
            if let last = files.scans[scope], 0..<Self.scanInterval ~= serverNow - last { continue }
            self.files?.scans[scope] = serverNow
            for hash in namesOnServer(in: scope) {
                let place = Place(scope: scope, hash: hash)
                if files.present.contains(place) { self.files?.uses[place] = serverNow }
            }
        }
    }

    /// How often each scope lost history.
    var losses: [Scope: Int] { scopes.mapValues(\.newest) }

    /// A device's file is another one.
    func fileReplaced(_ device: Int, _ fate: SimulatedDevice.FolderFate, with former: [BlobReference: OracleFiles.Owed])
    {
        guard let files else { return }
        switch fate {
        case .stays: self.files?.owed[device] = former.filter { files.owed[device][$0.key] != nil }
        case .isGone: self.files?.owed[device] = [:]
        case .comesAlong: self.files?.owed[device] = former
        }
        for part in files.told.keys where part.user == device { self.files?.told[part] = nil }
        for place in files.had.subtracting(files.present) { self.files?.unknown[place, default: []].insert(device) }
    }

    /// The store is another one than before: what was kept there since is not known.
    ///
    /// - Parameter isBack: whether it is one that was there before. Devices may know its history, and not hear that it
    ///   lacks bytes (Reliability.md, Known).
    func filesReplaced(before losses: [Scope: Int]?, isBack: Bool = false) {
        guard let former = files?.present, let losses else { return }
        files?.startAnew()
        check { try checkBlobs() }
        let present = files?.present ?? []
        files?.uses = [:]
        for place in former.subtracting(present) {
            let isLost = scopes[place.scope].map { $0.newest > losses[place.scope] ?? 0 } ?? false
            let fork = isLost ? scopes[place.scope]?.forks.last ?? 0 : .max
            let unknowing = devices.indices.filter { device in
                isBack || (devices[device].sight.scopes[place.scope]?.complete ?? 0) <= fork
            }
            files?.unknown[place, default: []].formUnion(unknowing)
        }
    }

    // MARK: A device's

    private func checkFiles(of device: SimulatedDevice) throws {
        let (number, here) = (device.number, device.files())
        for (hash, url) in here.sorted(by: { $0.key < $1.key }) {
            let bytes = (try? Data(contentsOf: url)).map { [UInt8]($0) }
            guard bytes == nil || bytes != files?.contents[hash] else { continue }
            throw Violation("A12 shown", "device \(number) shows other bytes as \(hash.prefix(6))")
        }
        for reference in (files?.owed[number] ?? [:]).keys.sorted(by: { $0.hash < $1.hash }) {
            try checkOwed(reference, on: number, isHere: here[reference.hash] != nil)
        }
    }

    private func checkOwed(_ reference: BlobReference, on device: Int, isHere: Bool) throws {
        let (places, now) = (self.places(naming: reference, on: device), world.wallClock(of: device))
        guard !places.isEmpty else {
            let since = files?.owed[device][reference]?.unnamedSince ?? now
            files?.owed[device][reference]?.unnamedSince = since
            // Nothing has to keep it from then on.
            if !(0..<World.week ~= now - since) { files?.owed[device][reference] = nil }
            return
        }
        files?.owed[device][reference]?.unnamedSince = nil
        guard !isHere else { return }
        let own = places.filter { files?.owed[device][reference]?.named.contains($0) == true }
        guard let place = own.first(where: { files?.had.contains($0) != true }) else {
            files?.owed[device][reference] = nil
            count("made room")
            return
        }
        throw Violation(
            "A12 lost", "device \(device) has removed \(place.hash.prefix(6)), which \(place.scope) never got")
    }

    /// Where rows on a device name a file.
    func places(naming reference: BlobReference, on device: Int) -> [Place] {
        (places(on: device)[reference] ?? []).sorted { $0.scope < $1.scope }
    }

    /// Where rows on a device name each of the files that they do.
    func places(on device: Int) -> [BlobReference: Set<Place>] {
        guard files != nil else { return [:] }
        var found: [BlobReference: Set<Place>] = [:]
        for (key, cells) in devices[device].sight.rows {
            guard let table = tables[key.entity] else { continue }
            for reference in Self.references(in: cells, table, world.app) {
                for scope in table.scopes(of: cells) {
                    found[reference, default: []].insert(Place(scope: scope.parent, hash: reference.hash))
                }
            }
        }
        return found
    }

    private static func references(
        in cells: [Value?], _ table: OracleTable, _ app: SimulatedApp
    ) -> [BlobReference] {
        guard let columns = app.tables.first(where: { $0.name == table.name })?.attachments else { return [] }
        return columns.compactMap { column in
            guard let index = table.data.firstIndex(of: column.column), case .text(let text)? = cells[index] else {
                return nil
            }
            return BlobReference(text)
        }
    }

    // MARK: The end

    /// Whether the server has the bytes in a scope in which a device names them.
    func isThere(_ reference: BlobReference, for device: Int) -> Bool {
        places(naming: reference, on: device).contains { files?.present.contains($0) == true }
    }

    func checkFetched(_ reference: BlobReference, on device: Int) {
        check {
            guard world.devices[device].files()[reference.hash] == nil else { return count("fetched") }
            throw Violation("A12 fetched", "device \(device) does not get \(reference.hash.prefix(6))")
        }
    }

    /// What the server lacks is on no device that could have brought it.
    func checkMissing(_ reference: BlobReference, on device: Int) throws {
        for place in places(naming: reference, on: device) where files?.present.contains(place) != true {
            // A device that moves a row to another scope takes the row's bytes along.
            if world.lostDevices.isEmpty, files?.unknown[place] == nil,
                let other = files?.present.first(where: { $0.hash == place.hash })
            {
                throw Violation(
                    "A12 moved",
                    "device \(device): \(place.hash.prefix(6)) of \(other.scope) did not come along to \(place.scope)")
            }
            for other in world.devices where other.files()[reference.hash] != nil {
                guard places(naming: reference, on: other.number).contains(place),
                    files?.unknown[place]?.contains(other.number) != true
                else { continue }
                let (isStored, isOwed) = (
                    try isStored(place, reference, on: other),
                    files?.owed[other.number][reference]?.named.contains(place) == true
                )
                guard isStored || isOwed && !world.lostDevices.contains(other.number) else { continue }
                guard files?.wentEarly.contains(place) != true else { continue }
                throw Violation(
                    "A12 reuploaded",
                    "device \(other.number) has \(place.hash.prefix(6)), and does not reupload it to \(place.scope)")
            }
        }
    }

    /// Whether a device takes the server to have the bytes.
    private func isStored(_ place: Place, _ reference: BlobReference, on device: SimulatedDevice) throws -> Bool {
        try device.file.queue.unsafeRead { db in
            try Bool.fetchOne(
                db, sql: "SELECT stored FROM tidemark_blob WHERE reference = ? AND scope = ?",
                arguments: [reference.description, place.scope.name]) ?? false
        }
    }
}
