import Foundation

/// How much is tried: little in every build, more by environment.
enum Amount {
    /// A number from the environment, or this one.
    static func named(_ name: String, or ordinary: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? ordinary
    }

    static func word(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }

    /// Figures of long runs.
    static func tell(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }
}
