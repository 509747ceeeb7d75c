#if Server
    import Testing

    /// Looks again and again until something is so that nothing tells of, for two minutes at most.
    ///
    /// - Throws: what `isSo` throws; an expectation's failure where it is not so by then.
    func poll(
        every pause: Duration = .milliseconds(10), sourceLocation: SourceLocation = #_sourceLocation,
        until isSo: () async throws -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + .seconds(120)
        while ContinuousClock.now < deadline {
            if try await isSo() { return }
            try await Task.sleep(for: pause)
        }
        try #require(try await isSo(), sourceLocation: sourceLocation)
    }
#endif
