import Tidemark

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension World {
    /// Every device compares itself with the server, once all of them are in sync, and finds that nothing differs.
    func compareAll() throws {
        for device in devices {
            guard let process = device.process, let engine = process.engine else { continue }
            let (number, asked) = (device.number, comparisonCount)
            process.start { [self] in
                do {
                    let report = try await engine.verify()
                    guard !report.isClean else { return }
                    oracle?.check { throw Violation("I4", "device \(number) differs from the server: \(report)") }
                } catch {
                    oracle?.check { throw Violation("I12", "device \(number) cannot be compared: \(error)") }
                }
            }
            quiesce()
            flow()
            guard comparisonCount - asked > app.parts.count else { continue }
            oracle?.check { throw Violation("F2", "the server's sums are not those of its rows") }
        }
        try oracle?.report()
    }
}
