import GRDB
import Tidemark
import TidemarkCore
import TidemarkServer
import TidemarkWire

/// What a world has come to, as far as it decides what can happen from here on: the devices' files, what their engines
/// remember, the messages under way, the server's store, and which edits the oracle still waits to see.
///
/// Names that were made up by chance, and values that are only different from all others, are put in the order in which
/// they are met; devices are put in the order that makes the number smallest.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct WorldOutline {
    /// The same for worlds that go on alike.
    private(set) var hash: UInt64 = .max

    /// - Parameter hasBackup: whether the server may still be put back to what it was.
    init(_ world: World, _ reader: FileReader, hasBackup: Bool) throws {
        var words = NamedWords()
        let logs = try ([world.server.store.image()] + (hasBackup ? [world.server.backup] : [])).compactMap(\.log)
        var sections: [NamedText] = []
        var clients: [String?] = []
        for device in world.devices {
            var text: [UInt8] = []
            let client = try device.file.queue.unsafeRead { db in
                try reader.read(db, device: device.number, into: &text)
                return try String.fetchOne(
                    db.cachedStatement(sql: "SELECT value FROM tidemark_meta WHERE key = 'clientId'"))
            }
            clients.append(client)
            Self.write(device, of: world, to: &text)
            for log in logs {
                log.outline(of: client.map { [$0] } ?? [], to: &text)
            }
            sections.append(NamedText(text, &words))
        }
        var text: [UInt8] = []
        text += "\(world.server.failures)".utf8
        for log in logs {
            log.outline(except: Set(clients.compactMap(\.self)), to: &text)
        }
        let server = NamedText(text, &words)
        for order in Self.orders(of: sections.count) {
            var hasher = NamingHasher(count: words.count)
            for device in order { sections[device].hash(into: &hasher) }
            server.hash(into: &hasher)
            for (device, due) in world.timers.inOrder {
                hasher.add(byte: UInt8(truncatingIfNeeded: order.firstIndex(of: device) ?? 0))
                hasher.add(due - world.time)
            }
            hash = min(hash, hasher.finish())
        }
    }

    private static func orders(of count: Int) -> [[Int]] {
        guard count > 0 else { return [[]] }
        return orders(of: count - 1).flatMap { order in
            (0...order.count).map { place in
                var order = order
                order.insert(count - 1, at: place)
                return order
            }
        }
    }

    /// What a device is apart from its file: the process, its messages, and what the oracle waits for.
    private static func write(_ device: SimulatedDevice, of world: World, to text: inout [UInt8]) {
        if let process = device.process, process.isAlive {
            text += "on \(process.remaining ?? -1) \(process.openSyncs) \(world.memory(of: process)) ".utf8
        }
        for message in world.messages where message.device == device.number {
            text += "\(message.request.path) \(message.request.query) \(message.continuation != nil) ".utf8
            text += message.request.body
            if let response = message.response {
                text += "\(response.status)".utf8
                text += response.body
            }
            text.append(0x1e)
        }
        guard let known = world.oracle?.devices[device.number] else { return }
        for (key, writes) in known.writes.sorted(by: { $0.key < $1.key }) {
            for (column, write) in writes.sorted(by: { $0.key < $1.key }) {
                text += "\(key) \(column) \(write.value?.bare ?? "") \(write.logged?.version ?? -1)\u{1e}".utf8
            }
        }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension World {
    /// What a process's engine remembers.
    fileprivate func memory(of process: SimulatedProcess) -> String {
        guard let engine = process.engine else { return "" }
        let box = MemoryBox()
        process.start { box.text = await engine.memory }
        executor.drain { _ in 0 }
        return box.text
    }
}

/// Unchecked because everything of a world happens on one thread.
private final class MemoryBox: @unchecked Sendable { var text = "" }

extension MemoryLog {
    /// What the server knows of some devices.
    func outline(of clients: Set<String>, to text: inout [UInt8]) {
        for scope in scopes {
            for (name, standing) in scope.devices where clients.contains(name.client) {
                text += "\(scope.name.name) \(standing.version ?? -1) \(standing.oldest ?? -1)\u{1e}".utf8
            }
            let own = scope.lanes.filter { clients.contains($0.key.client) }
            for (name, lane) in own.sorted(by: { $0.value.place < $1.value.place }) { Self.write(name, lane, &text) }
        }
        text.append(0x1d)
    }

    /// What it knows besides.
    func outline(except clients: Set<String>, to text: inout [UInt8]) {
        for scope in scopes {
            let state = scope.state
            text += "\(scope.name.name) \(state.head) \(state.sweepFloor) \(state.retentionFloor) ".utf8
            text += "\(state.incarnations.map { "\($0.id) \($0.start)" })".utf8
            for row in scope.rows.all {
                text += "\(row.version) \(row.kind) \(row.supersededBy ?? -1) ".utf8
                for bytes in [row.key.entity, row.key.record, row.payload, row.fieldVersions, row.originals] {
                    text += bytes ?? [0]
                    text.append(0x1e)
                }
            }
            let others = scope.lanes.filter { !clients.contains($0.key.client) }
            for (name, lane) in others.sorted(by: { $0.value.place < $1.value.place }) { Self.write(name, lane, &text) }
        }
        text += "\(rejections.count)".utf8
        text.append(0x1d)
    }

    private static func write(_ name: LaneName, _ lane: ScopeLog.Lane, _ text: inout [UInt8]) {
        text += "\(name.lane) \(lane.number)".utf8
        for (number, verdict) in lane.verdicts.sorted(by: { $0.key < $1.key }) {
            text += " \(number) ".utf8
            text += verdict.members
        }
        text.append(0x1e)
    }
}
