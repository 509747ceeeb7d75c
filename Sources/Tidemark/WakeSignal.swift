/// Lets one task sleep until a time has passed or somebody calls.
actor WakeSignal {
    private var isRaised = false
    private var sleeper: CheckedContinuation<Void, Never>?
    /// Which sleep is going on, so that the timer of an earlier one does not end it.
    private var sleepNumber = 0

    /// Wakes the sleeper, or makes its next sleep end at once.
    func raise() {
        isRaised = true
        sleeper?.resume()
        sleeper = nil
    }

    /// Returns whether somebody called, rather than the time having passed or the task having been cancelled.
    func sleep(for duration: Duration) async -> Bool {
        if !isRaised {
            sleepNumber += 1
            let number = sleepNumber
            let timer = Task {
                try? await Task.sleep(for: duration)
                self.expire(number)
            }
            await withTaskCancellationHandler {
                await withCheckedContinuation { sleeper = $0 }
            } onCancel: {
                timer.cancel()
            }
            timer.cancel()
        }
        defer { isRaised = false }
        return isRaised
    }

    private func expire(_ number: Int) {
        guard number == sleepNumber else { return }
        sleeper?.resume()
        sleeper = nil
    }
}
