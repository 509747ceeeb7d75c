import Foundation

/// What has to hold of whatever stands in a request's first lines: the one that `TIDEMARK_FUZZ_TARGET` names.
private let property: @Sendable ([UInt8]) async throws -> Void = {
    switch ProcessInfo.processInfo.environment["TIDEMARK_FUZZ_TARGET"] {
    case "jwt": return Tokens.checkForged
    case "claims": return Tokens.checkClaims
    case "query": return Queries.check
    default:
        print("jwt\nclaims\nquery")
        exit(2)
    }
}()

/// What the fuzzer calls with every input that it makes.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = Array(UnsafeRawBufferPointer(start: bytes, count: count))
    let isDone = DispatchSemaphore(value: 0)
    Task {
        do { try await property(input) } catch { fatalError("\(error)") }
        isDone.signal()
    }
    isDone.wait()
    return 0
}

/// What did not hold.
struct BrokenProperty: Error, CustomStringConvertible {
    let description: String
}

/// States what has to hold.
func hold(_ condition: Bool, _ what: @autoclosure () -> String) throws {
    if !condition { throw BrokenProperty(description: what()) }
}
