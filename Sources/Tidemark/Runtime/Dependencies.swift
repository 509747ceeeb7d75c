/// The world that the present task runs in.
package enum Dependencies {
    /// The device itself, unless a simulation has put another one in place.
    @TaskLocal package static var current: any Environment = Platform()
}

/// The wall clock, in milliseconds since 1970. It is shown to people, ends retentions and waits that outlive a process,
/// and stamps edits; no order of versions or operations depends on it.
func wallClockMilliseconds() -> Int64 { Dependencies.current.wallClock }

/// Random digits for the names of this file, of lanes and of groups.
func randomHex(bytes count: Int) -> String {
    let dependencies = Dependencies.current
    var text = ""
    for _ in 0..<count {
        let byte = UInt8(truncatingIfNeeded: dependencies.random() >> 56)
        text += String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }
    return text
}
