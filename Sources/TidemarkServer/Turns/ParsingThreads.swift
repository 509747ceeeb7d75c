import Foundation

/// Threads for what takes long and serves one caller: others are answered meanwhile (I14).
enum ParsingThreads {
    private static let queue = DispatchQueue(label: "tidemark.parsing", attributes: .concurrent)

    static func run(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }
}
