import Foundation
import TidemarkCore
import TidemarkServer

/// Where workers get what they do. All of it may be called from any thread.
protocol WorkQueue: AnyObject, Sendable {
    associatedtype Work
    /// Waits until there is something to do; `false` at the end.
    func wait() -> Bool
    /// The next thing to do; `nil` where another worker was faster.
    func take() -> Work?
    func perform(_ work: Work, on line: Line)
    /// A worker gets or has lost its connection.
    func count(connections: Int)
    /// A worker has no connection. Others may have; where none has, what waits is refused.
    func refuse(_ error: any Error)
}

/// Threads of their own, each with one connection: what blocks here blocks no task of anybody else's.
struct Workers: Sendable {
    private let ended = DispatchGroup()
    /// Enough for the engine's work on what is read.
    private static let stackSize = 4 << 20

    func start<Queue: WorkQueue>(_ count: Int, _ name: String, for queue: Queue, _ connector: Connector) {
        for _ in 0..<max(1, count) {
            ended.enter()
            let thread = Thread { [ended] in
                Self.run(queue, connector)
                ended.leave()
            }
            thread.name = "tidemark \(name)"
            thread.stackSize = Self.stackSize
            thread.start()
        }
    }

    func waitForEnd() { ended.wait() }

    private static func run<Queue: WorkQueue>(_ queue: Queue, _ connector: Connector) {
        let line = Line(connector)
        var wasConnected = false
        while queue.wait() {
            // A worker that is about to connect counts: others that fail meanwhile should not give up the work that it
            // will do.
            note(&wasConnected, true, queue)
            do { _ = try line.session() } catch {
                note(&wasConnected, false, queue)
                queue.refuse(error)
                Thread.sleep(forTimeInterval: Double(connector.rest.milliseconds) / 1000)
                continue
            }
            guard let work = queue.take() else { continue }
            queue.perform(work, on: line)
            line.check()
            note(&wasConnected, line.isConnected, queue)
        }
        note(&wasConnected, false, queue)
    }

    private static func note<Queue: WorkQueue>(_ was: inout Bool, _ isConnected: Bool, _ queue: Queue) {
        guard was != isConnected else { return }
        queue.count(connections: isConnected ? 1 : -1)
        was = isConnected
    }
}
