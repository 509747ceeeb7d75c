import Foundation
import Testing
import TidemarkSpawning

@Suite("Programs that tests start")
struct SpawnedTests {
    @Test("hold nothing else of this process open: what is closed here has an end for its reader")
    func inheritance() async throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        defer { close(ends[0]) }
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        // It runs until its input ends.
        let input = Pipe()
        let program = try Spawned(["/bin/cat"], input: input.fileHandleForReading.fileDescriptor)
        close(ends[1])
        var byte: UInt8 = 0
        try await poll { read(ends[0], &byte, 1) == 0 }
        #expect(program.isRunning)
        try input.fileHandleForWriting.close()
    }
}
