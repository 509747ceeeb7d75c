import TidemarkCore
import TidemarkWire

// MARK: - What an operation builds on

/// The outcome of an operation that another one builds on.
enum ChainLink: Hashable {
    case unknown
    case withoutEffect
    case took(Version?, base: Int64?)
}

extension Push {
    /// The versions that a chain of own operations wrote; `nil` where one of them took no effect.
    mutating func versions(ofChain number: Int64, _ lane: LaneName) throws -> Set<Version>? {
        var versions: Set<Version> = []
        var next: Int64? = number
        var steps = 0
        // Operations further back count as unseen.
        while let number = next, steps < server.limits.operations {
            switch try link(number, lane) {
            // The operation that is named may still come. Those behind an operation that took effect did so too; they
            // were acknowledged since, and their device knows the versions.
            case .unknown: return steps == 0 ? nil : versions
            case .withoutEffect: return nil
            case .took(let version, let base):
                if let version { versions.insert(version) }
                next = base
            }
            steps += 1
        }
        return versions
    }

    /// The outcome of one own operation, looked up once a request.
    private mutating func link(_ number: Int64, _ lane: LaneName) throws -> ChainLink {
        let key = OperationKey(lane: lane.lane, number: number)
        if let known = chains[key] { return known }
        let link: ChainLink
        cost.lookUp()
        if let stored = try writer.verdict(lane, number) {
            link =
                stored.tookEffect
                ? .took(stored.version, base: stored.baseNumber.flatMap { $0 < number ? $0 : nil }) : .withoutEffect
        } else {
            link = .unknown
        }
        // An unknown operation may come in this very request, so its link is not kept.
        if link != .unknown { chains[key] = link }
        return link
    }

    /// The first of the operations needed that took no effect.
    func missing(of needs: [Int64], _ lane: LaneName) throws -> Int64? {
        try needs.first { number in
            let effect = effects[OperationKey(lane: lane.lane, number: number)]
            return try effect ?? writer.verdict(lane, number)?.tookEffect != true
        }
    }
}
