extension HookMachine.Outcome {
    /// Reads an HTTP status. A redirection is not followed, so it is a refusal.
    ///
    /// - Parameter asked: what `Retry-After` says, in milliseconds.
    package init(status: Int, asked: Int64? = nil) {
        self =
            switch status {
            case 200..<300: .taken
            case 410: .gone
            case 408, 425, 429, 500...599: .failed(asked: asked)
            case 300..<500: .refused
            default: .failed()
            }
    }
}
