extension HookRunner {
    /// The times of a runner.
    package struct Times: Sendable {
        /// How long the right to call lasts without being kept, and so how long the heads of a node that was killed
        /// wait for another one.
        package var lead: Duration = .seconds(15)
        /// How often it is kept, or asked for.
        package var leadStep: Duration = .seconds(5)
        /// Between two looks through all scopes: hints of other nodes may be lost.
        package var look: Duration = .seconds(60)
        /// After a look that failed, or left something out.
        package var lookAgain: Duration = .seconds(2)
        /// Between two reads of the store.
        package var read: Duration = .milliseconds(20)
        /// For how long heads that were told are gathered before they are kept. Those of this time are told again where
        /// the process ends in between.
        package var keep: Duration = .milliseconds(500)
        /// For how long a call that was cancelled may go on before it is left to itself.
        package var patience: Duration = .seconds(2)
        /// For how long the store may fail before that is told.
        package var silence: Duration = .seconds(15)

        package init() {}
    }
}
