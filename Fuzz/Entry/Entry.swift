import Foundation
import TidemarkFuzzing

/// The one that `TIDEMARK_FUZZ_TARGET` names.
private let target: FuzzTarget = {
    let name = ProcessInfo.processInfo.environment["TIDEMARK_FUZZ_TARGET"]
    let targets = FuzzTarget.all + answers
    guard let target = targets.first(where: { $0.name == name }) else {
        print(targets.map(\.name).joined(separator: "\n"))
        exit(2)
    }
    return target
}()

/// What the fuzzer calls with every input that it makes.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafeRawPointer?, _ count: Int) -> CInt {
    // The fuzzer's own bytes, not a copy of them: a look behind their end is noticed.
    do { try target.check(UnsafeRawBufferPointer(start: bytes, count: count)) } catch {
        fatalError("\(error)")
    }
    return 0
}
